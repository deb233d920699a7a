"""Parquet files of the archive and their object stores; only this package imports pyarrow."""
