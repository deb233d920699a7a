"""Another store in place of the bundled Valkey: a Redis from PATH."""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from storage.embedded.valkey import ValkeyServer
from storage.settings import Durability

MISSING = "redis-server is not on PATH: install it (on Debian: apt-get install --no-install-recommends redis-server)"
UNAVAILABLE = 4
"""Exit code when the store is not available, the same as of the `millstream` command."""


PROGRAM_VARIABLE = "MILLSTREAM_TEST_REDIS_SERVER"
"""Environment variable with the path of the store's program in tests of replica sets; unset: the bundled Valkey."""


def tested_program() -> Path | None:
    """Return the program that `PROGRAM_VARIABLE` names, or None."""
    path = os.environ.get(PROGRAM_VARIABLE)
    return Path(path) if path else None


def find_redis() -> Path | None:
    """Return the path of redis-server, or None."""
    path = shutil.which("redis-server")
    return None if path is None else Path(path)


class NamedServer(ValkeyServer):
    """The given program, configured like the Valkey of a deployment; None: the bundled Valkey."""

    def __init__(self, data: Path, program: Path | None, durability: Durability = "always") -> None:
        super().__init__(data, durability=durability)
        if program is not None:
            self._binary, self._allocator = program, None

    def version(self) -> str:
        """Return name and version as reported: `Redis server v=7.0.15`."""
        command = [str(self._binary), "--version"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return " ".join(output.split()[:3])


def add_store(parser: argparse.ArgumentParser) -> None:
    """Add the option that `store_of` reads."""
    parser.add_argument("--store", choices=["bundled", "redis"], default="bundled")


def store_of(arguments: argparse.Namespace) -> Path | None:
    """Return the program of the store, None for the bundled one; exit if it is missing."""
    if arguments.store == "bundled":
        return None
    path = find_redis()
    if path is None:
        sys.stderr.write(f"{MISSING}\n")
        sys.exit(UNAVAILABLE)
    return path
