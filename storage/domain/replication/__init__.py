"""Replicated stores: the replica set, addresses of its members, acknowledgement."""
