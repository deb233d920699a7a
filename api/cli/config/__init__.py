"""Profiles and settings of the command line, with their sources."""
