"""Vocabulary shared by every layer; imports the standard library and msgspec only."""
