"""Repositories: the statements for one noun each."""
