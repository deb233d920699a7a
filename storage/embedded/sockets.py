"""Directory of a private server's unix socket, which only its owner can enter."""

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from storage.embedded.errors import EmbeddedServerError
from storage.embedded.processes import RunAs

SOCKET_PATH_BYTES_MAX = 107  # sockaddr_un.sun_path on Linux, less its final zero


def socket_directory(data: Path, server: str, owner: RunAs | None = None) -> Path:
    """Return a directory of mode 0700 for the server's socket, created if missing.

    DATA/run/<server>, unless the path of a socket in it would be too long, or has a comma, which Postgres and its clients
    would interpret as several paths; then a directory named by a hash of DATA in the user's runtime directory or the
    temporary one. Raises EmbeddedServerError when that directory belongs to another user.
    """
    inside = data / "run" / server
    path = os.fsencode(inside / ".s.PGSQL.5432")
    if len(path) <= SOCKET_PATH_BYTES_MAX and b"," not in path:
        directory = inside
    else:
        digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:16]
        directory = _short_root() / f"millstream-{digest}-{server}"
    _make_private(directory, owner)
    return directory


def _short_root() -> Path:
    runtime = Path(f"/run/user/{os.geteuid()}")  # what XDG_RUNTIME_DIR names
    return runtime if os.access(runtime, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())


def _make_private(directory: Path, owner: RunAs | None) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    owners = {os.geteuid()} | ({owner.uid} if owner else set())
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners:
        raise EmbeddedServerError(f"{directory} belongs to another user")
    if owner is None or status.st_uid == owner.uid:
        directory.chmod(0o700)
    else:
        os.chown(directory, owner.uid, owner.gid)
