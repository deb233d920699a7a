"""The archive engine: plan, copy, compact, trim, tiered reads and verification."""
