"""Requests and replies, without a store."""
