"""Finds accelerators without initialising them, and leases them to one holder on the whole machine.

`find` and `masks` say which devices there are for us, `leases` says whose they are, `proof` says whether they
are free and sound. Nothing here starts or ends a process, and nothing here waits: every call is one look.
"""
