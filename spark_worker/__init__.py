"""The Spark worker: archive, compaction and replay jobs.

The only package besides pyspark_millstream that imports pyspark.
"""
