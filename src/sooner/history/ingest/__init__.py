"""Reads what other systems know into a history: test reports, CI dumps, tables, git. One module a format.

Every source is read as a stream, in bounded memory. What cannot be read is counted, located and reported; it stops
nothing but itself, unless `strict` is asked for.
"""
