"""Samples, changes between them, and rollup."""
