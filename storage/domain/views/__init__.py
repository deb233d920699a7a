"""Views: rows that a SQL query over a stream keeps up to date."""
