"""The consumer group engine: membership, assignment, fetch and offsets."""
