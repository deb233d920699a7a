class AsyncWorking:
    """Placeholder."""
