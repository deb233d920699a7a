"""Callers' credentials, sessions and permissions, and the encryption of stored secrets."""
