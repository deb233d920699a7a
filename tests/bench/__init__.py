"""Benchmarks against a reference in the same run: `make bench`."""
