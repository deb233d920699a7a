"""Topics: streams whose records are copied to the targets of routes."""
