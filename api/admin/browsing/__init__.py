"""Content on pages: filters, columns and previews of messages and records."""
