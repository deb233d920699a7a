"""The SDKs, on a live service."""
