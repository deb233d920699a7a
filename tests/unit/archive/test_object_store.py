"""Where the archive is kept, on a disk and in an object store."""

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


def test_a_file_is_there_once_it_was_written(root):
    put(root, PATH, b"0123456789")

    assert root.size(PATH) == 10
    assert root.read(PATH, 0, 10) == b"0123456789"
    assert root.read(PATH, 3, 4) == b"3456"
    assert root.read(PATH, 10, 0) == b""


def test_what_lies_in_a_folder_is_listed(root):
    put(root, PATH, b"0123456789")
    put(root, "default/s2/one", b"1")

    found = {one.path: one for one in root.files("default/s1/")}

    assert found.keys() == {PATH}
    assert found[PATH].bytes == 10
    assert found[PATH].changed_at_ms > 1_700_000_000_000
    assert {one.path for one in root.files("")} == {PATH, "default/s2/one"}
    assert [*root.files("default/none/")] == []


def test_a_deleted_file_is_gone(root):
    put(root, PATH, b"x")

    root.delete(PATH)
    root.delete(PATH)

    assert root.size(PATH) is None
    assert [*root.files("default/s1/")] == []
    with pytest.raises(ArchiveDamaged, match="missing"):
        root.read(PATH, 0, 1)


def test_a_file_shorter_than_it_was_is_damaged(root):
    put(root, PATH, b"0123")

    with pytest.raises(ArchiveDamaged, match="shorter"):
        root.read(PATH, 2, 3)


def test_a_write_that_breaks_off_leaves_nothing(root):
    def break_off() -> None:
        with root.writing(PATH) as sink:
            sink.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        break_off()

    assert root.size(PATH) is None
    assert [*root.files("default/s1/")] == []


def test_records_are_written_and_verified(root):
    batch = encode_batch([Record(b"%d" % nth, "k") for nth in range(100)])
    records = batch_of([LogEntry(0, 1_700_000_000_000, 100, 1, 0, (batch,))], 0, 100, 0)

    with FileWriter(root, PATH, FileOf("default", "s1", 0, "0a1b2c3d")) as file:
        file.write(records, 100)
        written = file.finish()

    assert root.size(PATH) == written.file_bytes
    verify_file(root, PATH, written.file_bytes, written.digest)


# On a disk


def test_a_file_and_every_folder_that_leads_to_it_is_put_on_disk(tmp_path, monkeypatch):
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


def test_a_folder_that_is_emptied_goes_with_its_last_file(tmp_path):
    root = LocalRoot(str(tmp_path / "archive"))
    put(root, "ns/s1/a/file", b"x")
    put(root, "ns/s1/b/file", b"x")

    root.delete("ns/s1/a/file")

    assert [one.name for one in (tmp_path / "archive/ns/s1").iterdir()] == ["b"]
    root.delete("ns/s1/b/file")
    assert [*(tmp_path / "archive").iterdir()] == []


def test_a_full_disk_is_told_as_such(tmp_path, monkeypatch):
    root = LocalRoot(str(tmp_path))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFull):
        put(root, PATH, b"x")

    assert [*root.files("")] == []


def test_a_directory_that_is_not_mounted_has_lost_no_file(tmp_path):
    root = LocalRoot(str(tmp_path / "archive"))

    with pytest.raises(StorageUnavailable):
        root.read(PATH, 0, 1)
    with pytest.raises(StorageUnavailable):
        root.size(PATH)


# In an object store


def test_a_store_that_cannot_be_reached_is_unavailable():
    root = open_root("s3://key:secret@mill/a?endpoint_override=127.0.0.1:9&scheme=http")

    with pytest.raises(StorageUnavailable) as refused:
        root.read(PATH, 0, 1)

    assert "secret" not in str(refused.value)


def test_a_bucket_that_is_not_there_has_lost_no_file(s3_url):
    root = open_root(s3_url.replace("@mill/", "@other/"))

    with pytest.raises(StorageUnavailable, match="bucket"):
        root.read(PATH, 0, 1)


# URLs


def test_a_url_names_a_directory_or_a_bucket():
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
def test_other_urls_are_refused(url):
    with pytest.raises(ValueError, match=r"an archive|say file:///directory"):
        open_root(url)
