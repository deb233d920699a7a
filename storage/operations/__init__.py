"""Health, process registry and store-wide maintenance."""
