"""What the doors promise, as their clients see it."""
