"""`millstream source` against a service: every verb, as text and as JSON."""

import hashlib
import hmac
from pathlib import Path

import httpx
import pytest

from tests.cli_commands import CommandResult, millstream

pytestmark = pytest.mark.usefixtures("at_the_service")

SECRET, NEW_SECRET = "It's a Secret to Everybody", "of the next month"


@pytest.fixture
def queue(name: str) -> str:
    """The name of a new queue."""
    assert millstream("queue", "create", name).code == 0
    return name


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    """A file with the provider's secret, and an empty line."""
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n\n")
    return str(path)


@pytest.fixture
def source(queue: str, secret_file: str) -> str:
    """The name of a new source, which has that of its queue."""
    made = millstream(
        *("source", "create", queue, "github", f"queue:{queue}", "--secret-file", secret_file),
        *("--keep-header", "X-GitHub-Event", "-o", "json"),
    )
    assert made.code == 0, made.err
    return queue


def path_of(source: str) -> str:
    return str(millstream("source", "url", source, "-o", "json").json["path"])


def post(client: httpx.Client, path: str, body: bytes, secret: str = SECRET) -> int:
    """Post an event as GitHub does; return the status."""
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {"x-hub-signature-256": f"sha256={digest}", "x-github-delivery": body.decode()}
    return client.post(path, content=body, headers=headers).status_code


def received(queue: str) -> str:
    return millstream("queue", "receive", queue, "--wait", "5s").out


def test_created_source_receives_events_at_the_printed_path(client, queue, secret_file):
    into = f"queue:{queue}"

    made = millstream("source", "create", queue, "github", into, "--secret-file", secret_file)
    again = millstream("source", "create", queue, "github", into, "--secret-file", secret_file)
    other = millstream("source", "create", queue, "stripe", into, "--secret-file", secret_file)

    path = path_of(queue)
    assert made == CommandResult(0, f"Source {queue} created. Path: {path}\n", "")
    assert "already exists with these settings" in again.out
    assert (other.code, other.out) == (1, "")
    assert "webhook/provider" in other.err
    assert post(client, path, b"event") == 200
    assert received(queue) == "event\n"


def test_create_sets_every_option(queue, secret_file):
    made = millstream(
        *("source", "create", queue, "hmac", f"queue:{queue}", "--secret-file", secret_file),
        *("--signature-header", "X-Sum", "--keep-header", "X-One", "--keep-header", "X-Two"),
        *("--key", "/customer", "--tolerance", "10m", "--set", "webhook.prefix=v1="),
        *("--set", "dedup_seconds=60", "-o", "json"),
    ).json

    webhook = made["webhook"]
    assert webhook["headers"] == ["X-One", "X-Two"]
    assert (webhook["signature_header"], webhook["prefix"]) == ("X-Sum", "v1=")
    assert (webhook["tolerance_seconds"], made["dedup_seconds"]) == (600, 60)
    assert made["into"] == {"queue": queue, "stream": None, "key": "/customer"}
    assert webhook["secrets"] == ["(secret)"]


def test_apply_shows_changes_and_keeps_secrets(client, source):
    words = ("source", "apply", source, "github", f"queue:{source}", "--tolerance", "1m")

    planned = millstream(*words, "--dry-run")
    applied = millstream(*words)
    unchanged = millstream(*words)

    assert "would be updated: webhook/tolerance_seconds 300 → 60" in planned.out
    assert 'webhook/headers ["X-GitHub-Event"] → []' in planned.out
    assert "webhook/tolerance_seconds 300 → 60" in applied.out
    assert f"Source {source} unchanged." in unchanged.out
    assert post(client, path_of(source), b"event") == 200


def test_secrets_are_read_from_standard_input(client, source):
    rotated = millstream(
        *("source", "apply", source, "github", f"queue:{source}", "--secret-file", "-"),
        stdin=f"{NEW_SECRET}\n{SECRET}".encode(),
    )

    statuses = [post(client, path_of(source), b"1", secret) for secret in (SECRET, NEW_SECRET)]
    assert (rotated.code, statuses) == (0, [200, 200])
    assert NEW_SECRET not in rotated.out


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("github", "nowhere"), "use queue:NAME or stream:NAME"),
        (("github", "queue:none-of-that-name"), "does not exist"),
        (("github", "queue:q", "--secret-file", "/nothing/there"), "cannot read the secrets from"),
    ],
)
def test_invalid_source_is_refused_with_its_fault(name, words, fault):
    refused = millstream("source", "create", name, *words)

    assert refused.code != 0
    assert fault in refused.err


def test_sources_are_listed_as_table_names_and_json(source):
    table = millstream("source", "ls", "--prefix", source).out.splitlines()
    names = millstream("source", "ls", "--prefix", source, "-q").out
    [listed] = millstream("source", "ls", "--prefix", source, "-o", "json").json

    assert " ".join(table[0].split()).startswith("name provider queue stream paused")
    assert table[1].split()[:3] == [source, "github", source]
    assert names == f"{source}\n"
    assert listed["into"]["queue"] == source


def test_source_is_shown_with_its_counters(client, source):
    post(client, path_of(source), b"1")
    post(client, path_of(source), b"1")
    post(client, path_of(source), b"2", "a wrong secret")

    shown = millstream("source", "show", source, "-o", "json").json
    text = millstream("source", "show", source).out
    failures = millstream("source", "failures", source, "-o", "json").json
    table = millstream("source", "failures", source).out.splitlines()

    stats = shown["stats"]
    assert (stats["accepted"], stats["duplicates"], stats["rejected"]) == (1, 1, 1)
    assert "github" in text
    assert SECRET not in text
    assert [failure["reason"] for failure in failures] == ["signature_mismatch"]
    assert "signature_mismatch" in table[1]


def test_url_is_printed_alone_and_rotated(client, source):
    before = path_of(source)

    shown = millstream("source", "url", source)
    rotated = millstream("source", "rotate-url", source, "--overlap", "0s", "-o", "json").json

    assert shown.out == f"{before}\n"
    assert rotated["path"] == path_of(source) != before
    assert rotated["old_path_expires_at"] is None
    assert [post(client, path, b"1") for path in (before, rotated["path"])] == [404, 200]
    assert "New path: " in millstream("source", "rotate-url", source).out


def test_test_event_reaches_the_target(source):
    sent = millstream("source", "test", source)

    assert sent.out.startswith("Accepted test event test-")
    assert '"type":"test"' in received(source)


def test_paused_source_refuses_events(client, source):
    path = path_of(source)

    paused = millstream("source", "pause", source)
    refused = post(client, path, b"1")
    resumed = millstream("source", "resume", source, "-o", "json").json

    assert paused.out == f"Source {source} paused.\n"
    assert (refused, resumed["paused"]) == (503, False)
    assert post(client, path, b"1") == 200


def test_removal_requires_confirmation(client, source):
    path = path_of(source)

    refused = millstream("source", "rm", source)
    removed = millstream("source", "rm", source, "--yes", "-o", "json")

    assert refused.code == 2
    assert f"Source {source} with 0 waiting events will be deleted." in refused.err
    assert removed.json == {"name": source, "deleted": True}
    assert post(client, path, b"1") == 404
    assert millstream("source", "show", source).code == 3
