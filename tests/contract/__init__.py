"""Every protocol as its clients see it."""
