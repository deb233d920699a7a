"""Backups as one tar file: contents round-trip, and no member can escape the folder."""

import io
import tarfile
from pathlib import Path

import pytest

from storage.backup.tarball import pack, unpack
from storage.domain.backup_manifest import MANIFEST, BackupError


def tar_of(place: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(place, "w") as tar:
        for member in members:
            member.size = 1 if member.isreg() else 0
            tar.addfile(member, io.BytesIO(b"x"))
    return place


def a_file(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


def a_link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def test_files_and_folders_round_trip(tmp_path):
    """Uses only what Python on Debian 12 has: there, a restore raised a TypeError."""
    folder = tmp_path / "backup"
    for name, content in ((MANIFEST, b"{}"), ("store.rdb", b"\0" * 70_000), ("archive/a/b", b"")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    pack(folder, tmp_path / "backup.tar")

    with unpack(tmp_path / "backup.tar") as found:
        assert {
            place.relative_to(found).as_posix(): place.read_bytes()
            for place in found.rglob("*")
            if place.is_file()
        } == {MANIFEST: b"{}", "store.rdb": b"\0" * 70_000, "archive/a/b": b""}


@pytest.mark.parametrize(
    "member",
    [
        a_file("../outside"),
        a_file("/tmp/outside"),
        a_file("in/../../outside"),
        a_link("link", "/etc/passwd", tarfile.SYMTYPE),
        a_link("link", "../outside", tarfile.LNKTYPE),
        a_link("pipe", "", tarfile.FIFOTYPE),
    ],
    ids=lambda member: f"{member.name}-{member.type.decode()}",
)
def test_unsafe_tar_member_is_rejected(tmp_path, member):
    source = tar_of(tmp_path / "backup.tar", a_file(MANIFEST), member)

    with pytest.raises(BackupError, match="is not a file of a backup"), unpack(source):
        pass

    assert not (tmp_path / "outside").exists()


def test_truncated_tar_is_rejected(tmp_path):
    folder = tmp_path / "backup"
    folder.mkdir()
    (folder / MANIFEST).write_bytes(b"x" * 100_000)
    whole = tmp_path / "backup.tar"
    pack(folder, whole)
    whole.write_bytes(whole.read_bytes()[:50_000])

    with pytest.raises(BackupError), unpack(whole):
        pass
