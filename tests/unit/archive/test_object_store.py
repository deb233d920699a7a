"""Storage roots of the archive: a local directory and an object store."""

import errno
import os
from pathlib import Path

import pytest

from storage.domain.errors import ArchiveDamaged, StorageFull, StorageUnavailable
from storage.domain.log.entry import LogEntry
from storage.domain.log.record_batch import Record, encode_batch
from storage.parquet.file_reader import verify_file
from storage.parquet.file_writer import FileOf, FileWriter
from storage.parquet.local_store import LocalRoot
from storage.parquet.object_store import Root, open_root
from storage.parquet.record_schema import batch_of
from storage.parquet.s3_store import S3Root

PATH = "default/s1/v1/dt=2026-11-21/hr=20/shard=000000000000/file.parquet"


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Root:
    if request.param == "local":
        return open_root(f"file://{tmp_path}/archive")
    return open_root(request.getfixturevalue("s3_url"))


def put(root: Root, path: str, content: bytes) -> None:
    with root.writing(path) as sink:
        sink.write(content)


def test_written_file_can_be_read(root):
    put(root, PATH, b"0123456789")

    assert root.size(PATH) == 10
    assert root.read(PATH, 0, 10) == b"0123456789"
    assert root.read(PATH, 3, 4) == b"3456"
    assert root.read(PATH, 10, 0) == b""


def test_files_in_folder_are_listed(root):
    put(root, PATH, b"0123456789")
    put(root, "default/s2/one", b"1")

    files = {file.path: file for file in root.files("default/s1/")}

    assert files.keys() == {PATH}
    assert files[PATH].bytes == 10
    assert files[PATH].changed_at_ms > 1_700_000_000_000
    assert {file.path for file in root.files("")} == {PATH, "default/s2/one"}
    assert [*root.files("default/none/")] == []


def test_deleted_file_is_missing(root):
    put(root, PATH, b"x")

    root.delete(PATH)
    root.delete(PATH)

    assert root.size(PATH) is None
    assert [*root.files("default/s1/")] == []
    with pytest.raises(ArchiveDamaged, match="missing"):
        root.read(PATH, 0, 1)


def test_read_beyond_end_of_file_is_archive_damage(root):
    put(root, PATH, b"0123")

    with pytest.raises(ArchiveDamaged, match="truncated"):
        root.read(PATH, 2, 3)


def test_aborted_write_leaves_no_file(root):
    def break_off() -> None:
        with root.writing(PATH) as sink:
            sink.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()

    assert root.size(PATH) is None
    assert [*root.files("default/s1/")] == []


def test_record_file_is_written_and_verified(root):
    batch = encode_batch([Record(b"%d" % nth, "k") for nth in range(100)])
    records = batch_of([LogEntry(0, 1_700_000_000_000, 100, 1, 0, (batch,))], 0, 100, 0)

    with FileWriter(root, PATH, FileOf("default", "s1", 0, "0a1b2c3d")) as file:
        file.write(records, 100)
        written = file.finish()

    assert root.size(PATH) == written.file_bytes
    verify_file(root, PATH, written.file_bytes, written.digest)


# Local directory


def test_file_and_parent_directories_are_fsynced(tmp_path, monkeypatch):
    synced: list[str] = []
    fsync = os.fsync

    def note(file: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    monkeypatch.setattr(os, "fsync", note)

    put(LocalRoot(str(tmp_path / "archive")), "ns/s1/file", b"x")

    begun, *folders = synced
    assert begun.startswith(str(tmp_path / "archive/ns/s1/.file."))
    archive = tmp_path / "archive"
    assert folders == [str(one) for one in (archive / "ns/s1", archive / "ns", archive, tmp_path)]


def test_emptied_directories_are_removed(tmp_path):
    root = LocalRoot(str(tmp_path / "archive"))
    put(root, "ns/s1/a/file", b"x")
    put(root, "ns/s1/b/file", b"x")

    root.delete("ns/s1/a/file")

    assert [one.name for one in (tmp_path / "archive/ns/s1").iterdir()] == ["b"]
    root.delete("ns/s1/b/file")
    assert [*(tmp_path / "archive").iterdir()] == []


def test_full_disk_raises_storage_full(tmp_path, monkeypatch):
    root = LocalRoot(str(tmp_path))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        put(root, PATH, b"x")

    assert [*root.files("")] == []


def test_missing_root_directory_is_unavailable_not_damaged(tmp_path):
    root = LocalRoot(str(tmp_path / "archive"))

    with pytest.raises(StorageUnavailable):
        root.read(PATH, 0, 1)
    with pytest.raises(StorageUnavailable):
        root.size(PATH)


# Object store


def test_unreachable_object_store_is_unavailable():
    root = open_root("s3://key:secret@mill/a?endpoint_override=127.0.0.1:9&scheme=http")

    with pytest.raises(StorageUnavailable) as refused:
        root.read(PATH, 0, 1)

    assert "secret" not in str(refused.value)


def test_missing_bucket_is_unavailable_not_damaged(s3_url):
    root = open_root(s3_url.replace("@mill/", "@other/"))

    with pytest.raises(StorageUnavailable, match="bucket"):
        root.read(PATH, 0, 1)


# URLs


def test_url_names_directory_or_bucket():
    assert isinstance(open_root("file:///var/lib/mill%20stream"), LocalRoot)
    assert isinstance(open_root("s3://bucket"), S3Root)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/var",
        "file://host/var",
        "file://",
        "file:///",
        "http://x/y",
        "s3://",
        "s3://b/p?role=x",
    ],
)
def test_unsupported_url_is_rejected(url):
    with pytest.raises(ValueError, match=r"archive URL|use file:///directory"):
        open_root(url)
