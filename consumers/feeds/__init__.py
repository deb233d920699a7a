"""Shared feeds: each block of a shard is read and encoded once for all its readers."""
