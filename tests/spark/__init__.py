"""Tests that need Spark; they share one session."""
