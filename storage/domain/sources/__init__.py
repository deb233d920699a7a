"""Sources: events that other services send to this one, and their signatures."""
