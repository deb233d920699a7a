"""Queries: run once by a job, over records that are fixed when they are submitted."""
