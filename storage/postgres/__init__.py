"""Metadata tier: definitions, reservations and offsets."""
