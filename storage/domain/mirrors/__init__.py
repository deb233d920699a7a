"""Mirrors: copies of the streams of another deployment, and how far they are."""
