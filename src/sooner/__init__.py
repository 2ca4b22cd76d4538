"""Sooner: GPU test suites and GPU CI that give their signal sooner.

The package's rooms and who may import whom are drawn in ARCHITECTURE.md and held by `tests/test_architecture.py`.
Importing `sooner` itself imports nothing: start-up time is a feature.
"""

__version__ = "0.1.0"
