"""Streams: shards, records, lineage, filters and idempotence."""
