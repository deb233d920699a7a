"""Limits of jobs, replays and users' SQL."""
