"""Revisions of the schema; a released one is never edited, the next is written by hand."""
