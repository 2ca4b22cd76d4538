"""Keeps costly things alive between tests, and never lets one test poison another. Lives inside workers.

Standard library only: what runs here runs inside the process under test.
"""

from sooner.warm.pool import CreationSuspended, Kind, Lease, Limits, PoolError, ResourcePool, Statistics

__all__ = ["CreationSuspended", "Kind", "Lease", "Limits", "PoolError", "ResourcePool", "Statistics"]
