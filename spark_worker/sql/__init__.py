"""Fence around SQL that users write: parsed and checked, never executed here."""
