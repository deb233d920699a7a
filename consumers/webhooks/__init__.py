"""Delivering webhooks: what is due is posted, signed, to receivers that are watched."""
