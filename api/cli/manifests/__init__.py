"""Definitions as YAML documents: export, comparison, application and editing."""
