"""Outputs of every AWS operation."""

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import inspect

from api.aws.kinesis.actions.subscribe import SubscribeToShardEvent
from api.aws.kinesis.service import KINESIS
from api.aws.protocol.shapes import OperationOutput
from api.aws.sqs.service import SQS
from api.aws.sts.service import STS


def outputs(kind: type[msgspec.Struct] = OperationOutput) -> Iterator[type[msgspec.Struct]]:
    """Yield every shape of an answer."""
    for below in kind.__subclasses__():
        yield below
        yield from outputs(below)


def nullable_members(kind: type[msgspec.Struct]) -> Iterator[inspect.Field]:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    for field in described.fields:
        inner = field.type.type if isinstance(field.type, inspect.Metadata) else field.type
        if isinstance(inner, inspect.UnionType) and inner.includes_none:
            yield field


@pytest.mark.parametrize("kind", list(outputs()), ids=lambda kind: kind.__name__)
def test_output_members_without_value_are_left_out(kind):
    """The last event of a subscription had a null for its ContinuationSequenceNumber."""
    assert [one.name for one in nullable_members(kind) if one.default is not None] == []


def test_last_event_has_no_continuation():
    event = SubscribeToShardEvent([], 0, None, [])

    assert msgspec.json.encode(event) == b'{"Records":[],"MillisBehindLatest":0,"ChildShards":[]}'


def test_outputs_of_every_service_are_listed():
    assert SubscribeToShardEvent in set(outputs())
    assert all(service.operations for service in (SQS, KINESIS, STS))
