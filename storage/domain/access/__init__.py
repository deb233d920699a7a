"""Permissions, credentials and audit entries."""
