"""What Python brings along: its builtins and the standard library, as far as tests decide by them."""
