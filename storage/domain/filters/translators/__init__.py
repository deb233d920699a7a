"""Translators of other systems' conditions, a module per system."""
