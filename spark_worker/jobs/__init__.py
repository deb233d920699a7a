"""Job handlers, one job type in each module."""
