"""Archive of the classes that Spark loads: a JVM starts in half the processor time.

    install ─ build_class_archive ─▶ JVM runs a sample job, and writes what it has loaded at its end ─▶ spark-classes.jsa
    worker  ─ start ───────────────▶ JVM maps that file, instead of reading the classes from 300 jars and checking them

It is dynamic application class-data sharing: https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html. A JVM of
another version, or with other jars, ignores the file; without it everything works, and starts more slowly.
"""

import sys
from pathlib import Path

FILE = Path(sys.prefix, "share", "millstream", "spark-classes.jsa")
_QUIET = "-Xlog:disable"  # an archive that does not fit is no news; errors are written all the same


def load_options() -> list[str]:
    """Return the options of a JVM that uses the archive, if there is one."""
    return [_QUIET, f"-XX:SharedArchiveFile={FILE}"] if FILE.exists() else []


def dump_options(new: Path) -> list[str]:
    """Return the options of a JVM that writes an archive at its end."""
    return [_QUIET, f"-XX:ArchiveClassesAtExit={new}"]
