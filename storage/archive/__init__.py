"""The archive engine: planning, copying, compaction, trimming, tiered reads and verification."""
