"""The shared vocabulary: needs, units, devices, events, outcomes, errors; and their spellings as text.

Pure: no clock, file, environment or process. Imported by every room, imports none.
"""
