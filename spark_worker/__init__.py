"""The Spark worker: archive, compaction, replay and back-test jobs.

The only package besides pyspark_millstream that imports pyspark.
"""
