"""The cold tier: Parquet files, where they lie, and what is in them. The one home of pyarrow."""
