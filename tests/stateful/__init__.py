"""State machines against a plain-Python reference, checking the numbered invariants."""
