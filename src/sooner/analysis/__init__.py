"""Proposes changes from what happened. Each part has `load.py` (rows of the history to facts) and pure decisions."""
