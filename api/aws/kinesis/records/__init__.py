"""Records, sequence numbers, positions and deaggregation."""
