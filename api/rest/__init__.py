"""The native REST API, version 1."""
