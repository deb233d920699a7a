"""Versions between which a deployment rolls: the last release, this one, and one with a newer schema.

The last release is the newest tag. Without one it is the commit before the newest migration, so that the upgrade has a schema to
change.
"""

import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from storage.postgres.schema_revision import head
from tests.documentation import ROOT

PACKAGES = ("api", "consumers", "pyspark_millstream", "spark_worker", "storage")
SDK = Path("openapi") / "sdk" / "python"
SCRIPTS = Path("storage") / "postgres" / "migrations" / "versions"
REVISION_MODULE = Path("storage") / "postgres" / "schema_revision.py"
NEXT_MIGRATION = '''"""A table of the next version, and a column that this one does not write."""

import sqlalchemy as sa
from alembic import op

revision = "{new}"
down_revision = "{old}"


def upgrade() -> None:
    """Create both."""
    op.create_table("of_next_version", sa.Column("name", sa.Text, primary_key=True))
    op.add_column("queues", sa.Column("of_next_version", sa.Text, nullable=True))
'''


class Release(NamedTuple):
    """A version, and the root of its source."""

    name: str
    root: Path
    log: str = "log"
    """Name of the log of its processes."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment of Python that runs this version."""
        return {"PYTHONPATH": f"{self.root}:{self.root / SDK}"}

    @property
    def can_be_returned_to(self) -> bool:
        """Return whether it starts on newer schemas (ADR 0087)."""
        return "COMPATIBLE_SINCE" in (self.root / REVISION_MODULE).read_text()


THIS = Release("this version", ROOT)


class NoRelease(Exception):
    """The history does not have the last release."""


def last_release(place: Path) -> Release:
    """Unpack the last release into a directory. Raises NoRelease."""
    commit = _newest_tag() or _commit_before_newest_migration()
    root = place / "last-release"
    root.mkdir()
    archive = _git("archive", commit, *PACKAGES, str(SDK))
    subprocess.run(["tar", "-x", "-C", root], input=archive, check=True)
    return Release(f"release {commit[:12]}", root, "log-of-last-release")


def next_release(place: Path) -> Release:
    """Copy this version into a directory, and add a migration."""
    root = place / "next-release"
    for package in (*PACKAGES, SDK):
        shutil.copytree(
            ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    new = f"{int(head()) + 1:04}"
    migration = root / SCRIPTS / f"r{new}_next_version.py"
    migration.write_text(NEXT_MIGRATION.format(new=new, old=head()))
    return Release("a version with another migration", root)


def _newest_tag() -> str:
    with suppress(NoRelease):
        return _git("describe", "--tags", "--abbrev=0", "HEAD^").decode().strip()
    return ""


def _commit_before_newest_migration() -> str:
    pattern = str(SCRIPTS / f"r{head()}_*.py")
    try:
        added = _git("log", "--diff-filter=A", "--format=%H", "-1", "--", pattern).decode().strip()
        return _git("rev-parse", "--verify", f"{added}^").decode().strip()
    except NoRelease as error:
        raise NoRelease("no tag, and no commit before the newest migration") from error


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode != 0:
        raise NoRelease(f"git {words[0]}: {done.stderr.decode().strip()}")
    return done.stdout
