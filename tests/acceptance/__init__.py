"""The whole service, as a stranger meets it."""
