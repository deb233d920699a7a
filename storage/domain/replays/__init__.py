"""Replays and their pacing."""
