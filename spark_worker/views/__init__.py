"""Views: scans that keep their rows up to date, and searches for the records of a row."""
