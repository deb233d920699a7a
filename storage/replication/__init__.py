"""Replica set: its controller, which fails over, and operations on its members."""
