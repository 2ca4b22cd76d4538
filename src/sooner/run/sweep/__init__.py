"""Sweeps: tests asked, in throw-away processes, what they do at each number of visible devices.

What runs inside the project's own interpreter (`faked_devices`, `guards_only`, `inside`, `sweep_plugin`) is standard
library and pytest.
"""
