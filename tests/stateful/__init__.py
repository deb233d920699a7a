"""State machines compared with a plain-Python reference, checking the numbered invariants."""
