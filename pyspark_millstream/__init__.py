"""The Spark data source that users install; it speaks HTTP."""
