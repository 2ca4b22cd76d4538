"""The fault matrix, in parts.

What units do wrong (`acts`), which faults there are (`cases`), who runs them (`runners`), what is done to the runner
meanwhile (`injections`), and what must hold afterwards (`checks`).
"""
