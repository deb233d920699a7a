"""Messages, message attributes, digests and batches."""
