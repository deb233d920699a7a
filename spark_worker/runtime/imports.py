"""Imports of what jobs need, by one of their threads at a time.

    one thread    import pyspark      has the lock of the package, waits for that of `pyspark.sql`
    another one   import pyspark.sql  has the lock of the module, waits for that of the package

Python ends the deadlock by giving one of them a module that is incomplete, so that its job fails with an ImportError.
"""

from threading import Lock

IMPORTS = Lock()
"""Held while a thread imports modules that import PySpark."""
