"""Conversion of a backup to one tar file, and back into a folder."""

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from storage.domain.backup_manifest import MANIFEST, BackupError

SUFFIX = ".tar"


def pack(folder: Path, target: Path) -> None:
    """Write a folder as one file that only its owner can read, its manifest first.

    It is on disk when this returns.
    """
    with (
        open(target, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file,
        tarfile.open(fileobj=file, mode="w") as tar,
    ):
        places = sorted(place for place in folder.rglob("*") if place.is_file())
        for place in sorted(places, key=lambda path: path.name != MANIFEST):
            tar.add(place, place.relative_to(folder).as_posix(), recursive=False)
        tar.close()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def unpack(source: Path) -> Iterator[Path]:
    """Yield a backup's folder: itself, or a file's contents unpacked while the block runs.

    Raises BackupError.
    """
    if not source.is_file():
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="millstream-", ignore_cleanup_errors=True) as scratch:
        try:
            with tarfile.open(source) as tar:
                _unpack(tar, Path(scratch))
        except (tarfile.TarError, EOFError) as error:
            raise BackupError(f"{source} is not a backup or is corrupt: {error}") from None
        except OSError as error:
            raise BackupError(f"cannot unpack {source}: {error.strerror or error}") from None
        yield Path(scratch)


def _unpack(tar: tarfile.TarFile, folder: Path) -> None:
    """Unpack like `extractall` with its filter, which Debian 12's Python 3.11.2 lacks.

    Raises TarError.
    """
    for member in tar:
        place = PurePosixPath(member.name)
        content = tar.extractfile(member) if member.isreg() else None
        if content is None or place.is_absolute() or ".." in place.parts:
            raise tarfile.TarError(f"'{member.name}' is not a file of a backup")
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        with content, target.open("xb") as file:
            shutil.copyfileobj(content, file)
