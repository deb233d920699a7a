"""Versions between which a deployment rolls: the last release, this version, and one with a newer schema.

The last release is the newest tag. Without one it is the commit before the newest migration, so that the upgrade has a schema to
change.
"""

import subprocess
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from storage.postgres.schema_revision import MIGRATIONS, head
from tests.documentation import ROOT

SDK = Path("openapi") / "sdk" / "python"


class Release(NamedTuple):
    """A version, and the root of its source."""

    name: str
    root: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What lets Python run this version."""
        return {"PYTHONPATH": f"{self.root}:{self.root / SDK}"}


THIS = Release("this version", ROOT)


class NoRelease(Exception):
    """The history does not have the last release."""


def last_release(place: Path) -> Release:
    """Unpack the last release into a directory. Raises NoRelease."""
    commit = _newest_tag() or _commit_before_newest_migration()
    root = place / "last-release"
    root.mkdir()
    with tarfile.open(fileobj=BytesIO(_git("archive", commit))) as archive:
        archive.extractall(root, filter="data")
    return Release(f"release {commit[:12]}", root)


def _newest_tag() -> str:
    tags = _git("tag", "--merged", "HEAD", "--sort=-creatordate").decode().split()
    return tags[0] if tags else ""


def _commit_before_newest_migration() -> str:
    migration = next((MIGRATIONS / "versions").glob(f"r{head()}_*.py")).relative_to(ROOT)
    added = _git("log", "--diff-filter=A", "--format=%H", "-1", "--", str(migration)).decode()
    try:
        return _git("rev-parse", "--verify", f"{added.strip()}^").decode().strip()
    except NoRelease as error:
        raise NoRelease("no tag, and no commit before the newest migration") from error


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        raise NoRelease(f"git {words[0]}: {done.stderr.decode().strip()}")
    return done.stdout
