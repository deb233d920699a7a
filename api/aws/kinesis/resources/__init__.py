"""Tags, resource policies and registered consumers."""
