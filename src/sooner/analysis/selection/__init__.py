"""Which jobs a change must run, why, and what leaving the others out would have missed."""
