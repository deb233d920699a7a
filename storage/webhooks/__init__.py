"""Webhook definitions and delivery leases."""
