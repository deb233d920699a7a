"""Limits of credentials, quotas and the audit log."""
