"""Processes: the guardian, one warden for each running unit, and the runner's client of both.

Everything in this folder but `client.py` runs in an interpreter without site-packages: standard library only.
"""
