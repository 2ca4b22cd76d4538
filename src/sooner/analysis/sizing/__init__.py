"""Which runner is big enough, how many, what it costs: pools replayed and fitted, placements, the ledger."""
