"""Acceptance tests: the whole service, through its public interfaces."""
