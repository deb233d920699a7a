"""Limits of webhooks, sources and mirrors."""
