"""Python, evaluated: values, expressions, statements, calls, definitions, and the machine that does it for one size."""
