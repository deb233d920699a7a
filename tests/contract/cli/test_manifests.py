"""`millstream apply`, `diff` and `export` against a service."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.cli_commands import CommandResult, millstream

NOWHERE = "http://127.0.0.1:9"
EVERY_KIND = """\
kind: webhook
name: hook-{n}
spec:
  source: group:readers-{n}
  url: http://127.0.0.1:1/hooks
  headers: {{authorization: a secret}}
  on_failure: dead_letter
  dead_letter_queue: bounced-{n}
---
kind: route
name: queue:bounced-{n}/all
spec:
  target: {{queue: mails-{n}}}
---
kind: group
name: readers-{n}
spec:
  stream: views-{n}
---
kind: stream
name: views-{n}
spec:
  shards: 2
---
kind: queue
name: mails-{n}
spec:
  attempts_max: 3
  backoff: {{kind: exponential}}
  dead_letters: {{queue: bounced-{n}, receives_max: 5}}
  tags: {{team: "no"}}
---
kind: queue
name: bounced-{n}
"""
CREATED = [
    *("queue bounced-{n}", "queue mails-{n}", "stream views-{n}"),
    *("route queue:bounced-{n}/all", "group readers-{n}", "webhook hook-{n}"),
]


@pytest.fixture(autouse=True)
def at_the_service(service_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MILLSTREAM_URL", service_url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def write(tmp_path: Path, name: str) -> Callable[[str], str]:
    """Write a file of documents, with names of the test's own, and return its path."""

    def write(text: str) -> str:
        path = tmp_path / "definitions.yaml"
        path.write_text(text.format(n=name))
        return path.name

    return write


def lines(name: str, outcome: str) -> list[str]:
    return [f"{title.format(n=name)} {outcome}" for title in CREATED]


def test_documents_are_applied_once_in_order_of_dependencies(write, name):
    file = write(EVERY_KIND)

    before = millstream("diff", "-f", file)
    dry = millstream("apply", "-f", file, "--dry-run")
    done = millstream("apply", "-f", file)
    again = millstream("apply", "-f", file)
    after = millstream("diff", "-f", file)

    assert (before.code, before.out.splitlines()) == (1, lines(name, "created")), before.err
    assert (dry.code, dry.out) == (0, before.out)
    assert (done.code, done.out) == (0, before.out), done.err
    assert (again.code, again.out.splitlines()) == (0, lines(name, "unchanged"))
    assert after == CommandResult(0, "", "")


def test_difference_is_shown_and_applied(write, name, client):
    millstream("apply", "-f", write(EVERY_KIND))
    file = write(EVERY_KIND.replace("attempts_max: 3", "attempts_max: 4"))

    shown = millstream("diff", "-f", file)
    rows = millstream("diff", "-f", file, "-o", "json")
    applied = millstream("apply", "-f", file)

    expected = f"queue mails-{name} changed\n  /attempts_max: 3 -> 4\n"
    assert (shown.code, shown.out) == (1, expected)
    assert [row["outcome"] for row in rows.json].count("changed") == 1
    assert expected in applied.out
    assert client.get(f"/v1/queues/mails-{name}").json()["attempts_max"] == 4


def test_exported_documents_are_the_same_without_secrets(write, name, tmp_path):
    millstream("apply", "-f", write(EVERY_KIND))

    exported = millstream("export")
    (tmp_path / "exported.yaml").write_text(exported.out)
    same = millstream("diff", "-f", "exported.yaml")
    queues = millstream("export", "queues", "--prefix", "mails", "-o", "ndjson")

    documents = {(each["kind"], each["name"]): each for each in yaml.safe_load_all(exported.out)}
    assert exported.code == 0
    assert "a secret" not in exported.out
    assert documents["queue", f"mails-{name}"]["spec"]["tags"] == {"team": "no"}
    assert not {"headers", "paused"} & set(documents["webhook", f"hook-{name}"]["spec"])
    assert same.out == ""
    assert same == CommandResult(0, "", "")
    assert {row["kind"] for row in queues.lines} == {"queue"}
    assert f"mails-{name}" in [row["name"] for row in queues.lines]


NAMES_DELETED = """\
kind: stream
name: logs-{n}
---
kind: queue
name: gone-{n}
---
kind: group
name: readers-{n}
spec: {{stream: logs-{n}}}
---
kind: queue
name: mails-{n}
spec: {{dead_letters: {{queue: gone-{n}, receives_max: 5}}}}
---
kind: webhook
name: of-group-{n}
spec: {{source: "group:readers-{n}", url: "http://127.0.0.1:1/hooks"}}
---
kind: webhook
name: of-queue-{n}
spec: {{source: "queue:gone-{n}", url: "http://127.0.0.1:1/hooks"}}
---
kind: topic
name: orders-{n}
---
kind: route
name: orders-{n}/all
spec: {{target: {{queue: gone-{n}}}}}
---
kind: view
name: pages-{n}
spec:
  sql: select page, count(*) as clicks from c group by page
  from: {{c: {{stream: logs-{n}, columns: page string}}}}
"""


@pytest.mark.usefixtures("view_worker")
def test_export_is_unchanged_when_what_it_names_was_deleted(write, name, client, tmp_path):
    made = millstream("apply", "-f", write(NAMES_DELETED))
    for path in (f"streams/logs-{name}", f"queues/gone-{name}"):
        client.delete(f"/v1/{path}").raise_for_status()

    (tmp_path / "exported.yaml").write_text(exported := millstream("export").out)
    same = millstream("diff", "-f", "exported.yaml")
    changed = client.put(f"/v1/queues/mails-{name}", json={"attempts_max": 9})
    client.delete(f"/v1/views/pages-{name}").raise_for_status()

    assert made.code == 0, made.err
    kept = {(each["kind"], each["name"]) for each in yaml.safe_load_all(exported)}
    assert kept >= {("queue", f"mails-{name}"), ("view", f"pages-{name}")}
    assert same == CommandResult(0, "", "")
    assert changed.status_code == 200


def test_fifo_topic_is_applied_and_exported(write, name):
    fields = "  type: fifo\n  dedup_scope: key\n  shards: 2\n"
    file = write(f"kind: topic\nname: payments-{{n}}\nspec:\n{fields}")

    done = millstream("apply", "-f", file)
    again = millstream("apply", "-f", file)
    exported = millstream("export", "topics", "--prefix", "payments")

    assert (done.code, again.out) == (0, f"topic payments-{name} unchanged\n"), done.err
    documents = {each["name"]: each["spec"] for each in yaml.safe_load_all(exported.out)}
    spec = documents[f"payments-{name}"]
    assert (spec["type"], spec["dedup_scope"], spec["shards"]) == ("fifo", "key", 2)


def test_secrets_and_pause_stay_when_export_is_applied(write, name, client, tmp_path):
    millstream("apply", "-f", write(EVERY_KIND))
    millstream("queue", "pause", f"mails-{name}")
    millstream("webhook", "pause", f"hook-{name}")
    (tmp_path / "exported.yaml").write_text(millstream("export").out)

    millstream("apply", "-f", "exported.yaml")

    hook = client.get(f"/v1/webhooks/hook-{name}").json()
    assert hook["header_names"] == ["authorization"]
    assert hook["paused"] is True
    assert client.get(f"/v1/queues/mails-{name}").json()["paused"] is True


def test_exported_route_to_url_keeps_its_headers(write, name, client, tmp_path):
    write_route = """\
kind: topic
name: posts-{n}
spec: {{}}
---
kind: route
name: posts-{n}/crm
spec:
  target:
    url: https://shop.example/hooks
    headers: {{authorization: opensesame}}
"""
    millstream("apply", "-f", write(write_route))
    exported = millstream("export", "routes", "--prefix", f"posts-{name}/")
    (tmp_path / "exported.yaml").write_text(exported.out)

    applied = millstream("apply", "-f", "exported.yaml")

    assert "headers" not in exported.out
    assert applied.code == 0
    assert client.get(f"/v1/webhooks/route:posts-{name}.crm").json()["header_names"] == [
        "authorization"
    ]


def test_credentials_are_read_from_file(write, name, client, tmp_path):
    oauth = {"token_url": "https://login.example/token", "client_id": "a", "client_secret": "b"}
    (tmp_path / "oauth.json").write_text(json.dumps({"oauth": oauth}))
    (tmp_path / "broken.json").write_text("{client_secret")
    url, flag = "https://shop.example/hooks", "--credentials-file"
    millstream("queue", "create", f"q-{name}")
    millstream("topic", "create", f"t-{name}")

    hook = ("webhook", "create", f"hook-{name}", f"queue:q-{name}", url, flag)
    route = ("route", "create", f"t-{name}/crm", "--target-url", url, flag)
    broken = millstream(*hook, "broken.json")
    created = [millstream(*command, "oauth.json") for command in (hook, route)]

    assert (broken.code, "client_secret" in broken.err) == (2, False)
    assert [one.code for one in created] == [0, 0]
    for webhook in (f"hook-{name}", f"route:t-{name}.crm"):
        shown = client.get(f"/v1/webhooks/{webhook}").json()["credentials"]["oauth"]
        assert (shown["client_id"], shown["client_secret"]) == ("a", "(secret)")


def test_ordered_url_is_created_and_shown(name, client):
    millstream("topic", "create", f"t-{name}")
    url = ("--target-url", "https://shop.example/hooks")

    created = millstream("route", "create", f"t-{name}/crm", *url, "--ordered")
    again = millstream("route", "apply", f"t-{name}/crm", *url)

    assert created.code == 0
    assert client.get(f"/v1/queues/route:t-{name}.crm").json()["type"] == "fifo"
    assert again.code == 2
    assert "delete the route, or create another one" in again.err


def test_exported_credentials_keep_their_secret(write, name, client, tmp_path):
    documents = """\
kind: queue
name: q-{n}
spec: {{}}
---
kind: webhook
name: oauth-{n}
spec:
  source: queue:q-{n}
  url: https://shop.example/hooks
  credentials:
    oauth: {{token_url: "https://login.example/token", client_id: shop, client_secret: opensesame}}
"""
    millstream("apply", "-f", write(documents))
    exported = millstream("export", "webhooks", "--prefix", f"oauth-{name}")
    (tmp_path / "exported.yaml").write_text(exported.out)

    again = millstream("apply", "-f", "exported.yaml")
    client.delete(f"/v1/webhooks/oauth-{name}")
    elsewhere = millstream("apply", "-f", "exported.yaml")

    assert "client_secret: (secret)" in exported.out
    assert again.out == f"webhook oauth-{name} unchanged\n"
    assert elsewhere.code != 0
    assert "exported.yaml:11:7: webhook" in elsewhere.err
    assert "The secret is required" in elsewhere.err


def test_route_to_spread_is_applied_and_exported(write, name, tmp_path):
    write_route = """\
kind: topic
name: fleet-{n}
spec: {{}}
---
kind: route
name: fleet-{n}/work
spec:
  target:
    spread:
    - queue: worker-1
      weight: 2
    - queue: worker-2
"""
    file = write(write_route)

    applied = millstream("apply", "-f", file)
    again = millstream("apply", "-f", file)
    exported = millstream("export", "routes", "--prefix", f"fleet-{name}/")
    (tmp_path / "exported.yaml").write_text(exported.out)
    same = millstream("diff", "-f", "exported.yaml")

    assert applied.code == 0, applied.err
    assert f"route fleet-{name}/work unchanged" in again.out
    [document] = yaml.safe_load_all(exported.out)
    assert document["spec"]["target"]["spread"] == [
        {"queue": "worker-1", "weight": 2},
        {"queue": "worker-2", "weight": 1},
    ]
    assert same == CommandResult(0, "", "")


def test_failure_of_one_object_does_not_stop_others(write, name, client):
    file = write(
        """\
kind: queue
name: a-{n}
spec:
  attempt_max: 5
---
kind: group
name: b-{n}
spec:
  stream: missing
---
kind: queue
name: c-{n}
"""
    )

    compared = millstream("diff", "-f", file)
    applied = millstream("apply", "-f", file, "-o", "json")

    assert compared.code == 5
    assert compared.err.splitlines() == [
        f"definitions.yaml:4:3: queue a-{name}: Unknown field 'attempt_max'; did you mean 'attempts_max'?",
        f"definitions.yaml:8:1: group b-{name}: Stream 'missing' does not exist. (stream_not_found) "
        "`millstream stream ls` lists existing streams.",
        "millstream: 2 of 3 failed (see above)",
    ]
    assert applied.code == 5
    assert [row["outcome"] for row in applied.json] == ["failed", "created", "failed"]
    assert client.get(f"/v1/queues/c-{name}").status_code == 200


def test_nothing_of_an_invalid_file_is_applied(write, name, client):
    file = write("kind: queue\nname: a-{n}\n---\nkind: queue\nnme: b-{n}\n")

    done = millstream("apply", "-f", file)

    assert done.code == 2
    assert done.err.splitlines() == [
        "millstream: definitions.yaml:5:1: unknown field 'nme': did you mean 'name'?",
        "definitions.yaml:4:1: 'name' is missing",
    ]
    assert client.get(f"/v1/queues/a-{name}").status_code == 404


def test_new_reference_of_existing_object_is_a_change(write, name):
    millstream("queue", "create", f"a-{name}")
    file = write(
        """\
kind: queue
name: a-{n}
spec:
  dead_letters: {{queue: new-{n}, receives_max: 5}}
---
kind: queue
name: new-{n}
"""
    )

    done = millstream("diff", "-f", file)

    assert done.code == 1, done.err
    assert [line for line in done.out.splitlines() if line[0] != " "] == [
        f"queue new-{name} created",
        f"queue a-{name} changed",
    ]


def test_standard_input_is_applied(name):
    document = f"kind: queue\nname: {name}\n".encode()

    assert millstream("apply", "-f", "-", stdin=document).out == f"queue {name} created\n"


def test_unreachable_service_is_reported_once(write):
    done = millstream("apply", "-f", write(EVERY_KIND), "--url", NOWHERE)

    assert done.code == 4
    assert done.err.count(NOWHERE) == 1


def test_export_of_unknown_kind_is_rejected():
    done = millstream("export", "sockets")

    assert done.code == 2
    assert (
        "'sockets' is not a kind: use queue, stream, topic, route, group, view, mirror, webhook"
        in done.err
    )
