"""Consumer groups and the assignment of shards to their members."""
