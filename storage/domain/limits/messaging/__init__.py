"""Limits of messages, and of the nouns that store, route and read them."""
