"""Millstream for Spark: streams as sources and sinks of batch and Structured Streaming programs.

    spark.read.format("millstream").option("url", "http://127.0.0.1:8080").option("stream", "clicks").load()

Spark 4.3 and later find this package by its name. It speaks HTTP and needs nothing else of Millstream.
"""

from pyspark_millstream.source import MillstreamDataSource as DefaultSource

__all__ = ["DefaultSource"]
