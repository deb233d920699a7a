"""Parquet files of the archive and the object stores that hold them. The only package that imports pyarrow."""
