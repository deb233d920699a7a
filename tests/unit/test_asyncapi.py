"""The AsyncAPI document: current, complete, and consistent with the frames."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from api.spec.asyncapi import CLIENT_FRAMES, CLOSE_CODES, SERVER_FRAMES, build_asyncapi
from api.spec.frame_examples import EXAMPLES
from api.websocket.frames import ClientFrame, Close, ServerFrame

COMMITTED = Path(__file__).parents[2] / "openapi" / "asyncapi.json"
FRAMES = (*CLIENT_FRAMES, *SERVER_FRAMES)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return build_asyncapi()


def test_committed_document_is_current(document):
    """When this fails, run `make openapi` and review the difference."""
    assert json.loads(COMMITTED.read_text()) == document


def test_every_frame_is_a_message_and_an_operation(document):
    channel = document["channels"]["socket"]
    names = {frame.__name__ for frame in FRAMES}
    said = {
        message["$ref"].rpartition("/")[2]
        for operation in document["operations"].values()
        for message in operation["messages"]
    }

    assert channel["address"] == "/v1/ws"
    assert channel["messages"].keys() == document["components"]["messages"].keys() == names == said
    assert len(document["operations"]) == len(FRAMES)
    assert EXAMPLES.keys() == set(FRAMES)
    for message in document["components"]["messages"].values():
        assert message["summary"]


def test_operation_actions_are_from_the_server_perspective(document):
    for name, operation in document["operations"].items():
        [message] = operation["messages"]
        frame = message["$ref"].rpartition("/")[2]
        receives = frame in {kind.__name__ for kind in CLIENT_FRAMES}
        assert operation["action"] == ("receive" if receives else "send")
        assert name.startswith(operation["action"])


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.__name__)
def test_example_decodes_as_its_frame_and_matches_schema(document, frame):
    union = ClientFrame if frame in CLIENT_FRAMES else ServerFrame
    [example] = document["components"]["messages"][frame.__name__]["examples"]
    payload = example["payload"]

    read = msgspec.json.decode(msgspec.json.encode(payload), type=union)
    assert type(read) is frame
    again = msgspec.json.decode(msgspec.json.encode(read))
    assert _says(again, payload)
    _validator(document, frame).validate(payload)
    _validator(document, frame).validate(again)


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.__name__)
def test_schema_rejects_other_frame(document, frame):
    with pytest.raises(jsonschema.ValidationError):
        _validator(document, frame).validate({**EXAMPLES[frame], "type": "nothing"})


def test_every_close_code_is_documented(document):
    codes = {value for name, value in vars(Close).items() if name.isupper()}
    told = document["channels"]["socket"]["x-close-codes"]

    assert set(CLOSE_CODES) == codes
    assert [answer["code"] for answer in told] == list(CLOSE_CODES)
    assert {answer["code"] for answer in told if not answer["reconnect"]} == {
        code for code in codes if code in (1000, 1009) or code >= 4500
    }


def test_every_reference_resolves(document):
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document))):
        place: Any = document
        for word in reference.split("/"):
            place = place[word]
        assert place


def _validator(document: dict[str, Any], frame: type) -> Any:
    schema = {
        "$ref": f"#/components/schemas/{frame.__name__}",
        "components": document["components"],
    }
    return jsonschema.Draft202012Validator(schema)


def _says(told: Any, wanted: Any) -> bool:
    """Return whether `told` contains everything in `wanted`."""
    if isinstance(wanted, dict):
        return all(name in told and _says(told[name], value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return len(told) == len(wanted) and all(map(_says, told, wanted))
    return bool(told == wanted)
