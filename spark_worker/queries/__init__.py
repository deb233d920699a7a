"""Query jobs: relations over fixed records, one Spark query, its first rows."""
