"""Log entries, record batches and the store epoch."""
