"""Decides, purely, which gang of devices starts which unit next.

Events in, commands out: no clock, file, process or randomness. Time arrives inside the events, so the same scheduler
drives a live run and a simulation. Starting, leasing and killing belong to `run`.
"""
