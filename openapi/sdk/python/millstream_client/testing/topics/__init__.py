"""Topics of the in-memory service: their messages, routes and matches."""
