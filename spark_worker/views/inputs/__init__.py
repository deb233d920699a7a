"""Inputs of views: what their streams and tables have."""
