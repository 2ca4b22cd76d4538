"""Units on other machines: an agent on each does there what the runner does on its own.

`agent` is the process on the other machine, `node` the runner's side of it; they talk in `messages` over a socket. How
the agent gets there, and what carries the bytes, is somebody else's matter: `ray_nodes` has Ray do it.
"""
