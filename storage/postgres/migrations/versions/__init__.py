"""The revisions. A released one is never edited; the next one is written by hand beside it."""
