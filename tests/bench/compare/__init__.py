"""Comparison of Millstream with alternatives: `make compare`."""
