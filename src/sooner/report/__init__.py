"""Shows events and results: terminal, CI annotations. Decides nothing and changes nothing."""
