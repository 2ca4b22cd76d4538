"""What to run: TOML plans, recorded scripts and submitted commands become units with needs.

Pure: text and values in, values out. Files are read and scripts are run elsewhere (`run`, `cli`).
"""
