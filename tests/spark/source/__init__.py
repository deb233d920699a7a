"""The Spark data source against a real service."""
