"""Which commit broke trunk, whether it is a flake or the machines, and what to run to find out.

`facts` are what is judged, `posterior` says how probable each explanation is, `decide` what follows from it, `rules` is
the published rule set for comparison, `simulate` makes trunks whose culprits are known. All of these are pure; `load`
reads a history.
"""
