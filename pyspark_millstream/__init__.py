"""Millstream for Spark: streams as sources and sinks of batch and streaming programs.

    spark.read.format("millstream").option("url", "http://127.0.0.1:8080").option("stream", "clicks").load()

Streaming is Structured Streaming. Spark 4.3 and later find this package by its name. It uses HTTP and needs nothing else
of Millstream.
"""

try:
    from pyspark_millstream.source import MillstreamDataSource as DefaultSource
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "pyspark":
        raise
    raise ModuleNotFoundError(
        "pyspark_millstream needs PySpark 4.3: pip install '.[spark]' in a clone of Millstream",
        name="pyspark",
    ) from None

__all__ = ["DefaultSource"]
