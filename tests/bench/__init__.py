"""Measured against a reference in the same run: see `make bench`."""
