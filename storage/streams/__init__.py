"""The stream engine: append, read, seek, reshard and staged writes."""
