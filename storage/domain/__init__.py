"""The vocabulary every room shares; the standard library and msgspec only."""
