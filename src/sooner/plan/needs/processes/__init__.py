"""Processes that tests start: launchers, programs, workers, and the rank that each of them is."""
