"""The metadata tier: definitions, reservations and offsets."""
