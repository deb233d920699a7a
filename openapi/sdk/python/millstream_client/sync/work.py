class Working:
    """Placeholder."""
