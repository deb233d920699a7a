"""Sources: definitions, reception of events, and their transfer to a queue or stream."""
