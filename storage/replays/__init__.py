"""The replay engine: planning, windows and progress."""
