"""Views: definitions, planning, commits of batches, and reads of rows."""
