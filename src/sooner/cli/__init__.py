"""The command line: parses, wires rooms together, prints, exits. One file a verb; imported by nobody."""
