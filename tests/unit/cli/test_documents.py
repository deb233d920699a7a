"""YAML documents of definitions: values, places, faults, and the round trip."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cli.errors import CliError, ExitCode
from api.cli.manifests.documents import (
    ManifestDocument,
    dump_document,
    parse_documents,
    read_documents,
)
from api.cli.manifests.kinds import KINDS
from api.cli.manifests.reconciler import in_dependency_order
from api.cli.manifests.yaml_values import InvalidDocument
from tests.unit.cli.test_operations import is_operation

ORDERS = """\
# comment
kind: queue
name: orders
spec:
  attempts_max: 5
  tags: {team: shop}
  group_weights:
    - {group: a, weight: 2}
"""
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False)
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
values = st.recursive(
    scalars.filter(lambda value: value not in (float("inf"), float("-inf"))) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


def test_document_has_values_and_their_places():
    [document] = parse_documents(ORDERS, "a.yaml")

    assert (document.kind, document.name) == ("queue", "orders")
    assert document.spec == {
        "attempts_max": 5,
        "tags": {"team": "shop"},
        "group_weights": [{"group": "a", "weight": 2}],
    }
    assert document.location() == "a.yaml:4:1"
    assert document.location("/attempts_max") == "a.yaml:5:3"
    assert document.location("/group_weights/0/weight") == "a.yaml:8:18"
    assert document.location("/tags/other") == "a.yaml:6:3"


@given(spec=st.dictionaries(texts, values, max_size=5))
def test_written_document_is_read_unchanged(spec):
    document = ManifestDocument("queue", "orders", spec)

    [read] = parse_documents(dump_document(document), "")

    assert read.spec == spec


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("2026-01-31", "2026-01-31"),
        ("0777", "0777"),
        ("1_000", "1_000"),
        ("true", True),
        ("null", None),
        ("-3", -3),
        ("0.5", 0.5),
        ("'5'", "5"),
    ],
)
def test_plain_scalar_is_read_as_in_yaml_1_2(text, value):
    [document] = parse_documents(f"kind: queue\nname: a\nspec: {{x: {text}}}", "")

    assert document.spec == {"x": value}


def test_file_has_several_documents_and_empty_ones():
    text = "---\n---\nkind: queue\nname: a\n---\n{kind: stream, name: b, spec: }\n---\n"

    assert [document.title for document in parse_documents(text, "")] == ["queue a", "stream b"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kind: queu\nname: a", "f:1:1: unknown kind 'queu': did you mean 'queue'?"),
        ("kind: queue\nnam: a", "f:2:1: unknown field 'nam': did you mean 'name'?"),
        ("kind: queue", "f:1:1: 'name' is missing"),
        ("kind: queue\nname: 12", "f:2:1: 'name' must be text; quote it"),
        ("kind: queue\nname: a\nspec: [1]", "f:3:1: 'spec' must be a mapping of settings"),
        ("- kind: queue", "f:1:1: a document is a mapping with kind, name and spec"),
        ("kind: queue\nname: a\nspec:\n  x: 1\n  x: 2", "f:5:3: 'x' occurs twice"),
        ("kind: queue\nname: [", "f:2:8: expected the node content, but found '<stream end>'"),
        ("kind: queue\nname: !!python/name:os a", "f:2:7: could not determine a constructor"),
        ("? {a: 1}\n: 2", "f:1:1: names of members are text"),
        ("a: &a [*a]", "f:1:1: a document has at most"),
        (f"a: {'9' * 5_000}", "f:1:4: the number has too many digits"),
    ],
)
def test_invalid_document_is_rejected_with_its_place(text, fault):
    with pytest.raises(InvalidDocument) as raised:
        parse_documents(text, "f")

    place, _, detail = fault.partition(": ")
    [message, *_] = raised.value.args
    assert message.startswith(f"{place}: ")
    assert detail in message or "tag" in message


def test_aliases_cannot_expand_without_limit():
    levels = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]

    with pytest.raises(InvalidDocument, match="at most 100000 values"):
        parse_documents("\n".join(["a0: &a0 x", *levels]), "f")


def test_all_faults_of_all_files_are_reported(tmp_path):
    (tmp_path / "b.yaml").write_text("kind: queue\n---\nkind: strem\nname: a\n")
    (tmp_path / "a.yml").write_text(ORDERS)
    (tmp_path / "c.yaml").write_text(ORDERS)
    (tmp_path / "notes.txt").write_text("{")

    with pytest.raises(CliError) as raised:
        read_documents([tmp_path])

    faults = str(raised.value).splitlines()
    assert raised.value.code is ExitCode.USAGE
    assert len(faults) == 3
    assert "b.yaml:1:1: 'name' is missing" in faults[0]
    assert "b.yaml:3:1: unknown kind 'strem'" in faults[1]
    assert f"queue orders is also in {tmp_path}/a.yml:4:1" in faults[2]


@pytest.mark.parametrize("path", [Path("/nowhere.yaml"), Path("/dev/null")])
def test_missing_or_empty_file_is_an_error(path):
    with pytest.raises(CliError, match=r"cannot read|no documents"):
        read_documents([path])


def test_documents_follow_those_that_they_name():
    def queue(name: str, dead_letters: str = "") -> ManifestDocument:
        spec = {"dead_letters": {"queue": dead_letters}} if dead_letters else {}
        return ManifestDocument("queue", name, spec)

    documents = [
        ManifestDocument("webhook", "w", {"source": "group:g"}),
        ManifestDocument("group", "g", {"stream": "s"}),
        queue("a", "b"),
        ManifestDocument("stream", "s", {}),
        queue("b", "c"),
        queue("c"),
        queue("d", "e"),
        queue("e", "d"),
        ManifestDocument("topic", "t", {}),
        ManifestDocument("queue", "f", {"dead_letters": {"topic": "t"}}),
    ]

    titles = [document.title for document in in_dependency_order(documents)]

    assert titles == [
        *("queue c", "queue b", "queue a", "queue e", "queue d", "topic t", "queue f"),
        *("stream s", "group g", "webhook w"),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["get", "put", "list"])
def test_operations_of_kinds_exist(kind, verb):
    name = KINDS[kind].operations.format(verb)

    assert is_operation(f"{name}s" if verb == "list" else name)
