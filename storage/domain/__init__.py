"""Vocabulary shared by every layer, on the standard library, msgspec and sqlglot."""
