"""Descriptions of objects for people: sections, and problems in sentences."""
