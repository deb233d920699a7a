"""Request and response schemas, one noun per module."""
