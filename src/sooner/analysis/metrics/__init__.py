"""How long a signal takes, what it is made of, when it changed, and which part and which jobs moved it."""
