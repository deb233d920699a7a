"""Limits of processes, their maintenance, and what they measure."""
