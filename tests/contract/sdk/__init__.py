"""The SDKs against a live service."""
