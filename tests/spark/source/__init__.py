"""Tests of the Spark data source with a real service."""
