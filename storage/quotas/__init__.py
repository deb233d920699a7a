"""Quotas: rate limits, connection slots, admission control and usage."""
