"""Request and response schemas, one noun in each module."""
