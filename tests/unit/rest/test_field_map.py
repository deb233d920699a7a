"""Mapping of schemas to domain values and back, by the names of their fields."""

from typing import Annotated, Literal

import msgspec
import pytest
from pydantic import AwareDatetime, Field

from api.native.former_names import deprecated_member
from api.rest.definition_router import definition_router
from api.rest.field_map import (
    Mapped,
    MappedConfig,
    MappedDefinition,
    domain_value,
    wire_fields,
)
from api.rest.routes import groups, namespaces, queues, streams, webhooks
from api.rest.schema_base import Config
from storage.domain.names import QueueName


class Part(msgspec.Struct, frozen=True):
    text: str


class Spec(msgspec.Struct, frozen=True):
    timeout_ms: int = 0
    delays_ms: tuple[int, ...] = ()
    start_ms: int | None = None
    parts: tuple[Part, ...] = ()
    part: Part | None = None


class PartConfig(MappedConfig):
    domain = Part

    text: str


class SpecConfig(MappedConfig):
    domain = Spec

    timeout_seconds: float = 0
    delays_seconds: list[float] = []
    start: Annotated[AwareDatetime, Field(strict=False)] | None = None
    parts: list[PartConfig] = []
    part: PartConfig | None = None
    old: Annotated[bool | None, deprecated_member("Replaced.")] = None


CONFIG = SpecConfig.model_validate(
    {
        "timeout_seconds": 1.5,
        "delays_seconds": [1, 2],
        "start": "2026-01-31T12:00:00Z",
        "parts": [{"text": "a"}],
        "part": {"text": "b"},
    }
)
SPEC = Spec(1_500, (1_000, 2_000), 1_769_860_800_000, (Part("a"),), Part("b"))


def test_configuration_becomes_domain_value_and_back():
    assert CONFIG.to_domain() == SPEC
    assert SpecConfig.from_domain(SPEC) == CONFIG


def test_default_configuration_maps_to_default_value():
    assert SpecConfig().to_domain() == Spec()
    assert SpecConfig.from_domain(Spec()) == SpecConfig()


def test_passed_values_replace_mapped_ones():
    assert domain_value(Spec, CONFIG, timeout_ms=7).timeout_ms == 7
    assert wire_fields(SpecConfig, SPEC, timeout_seconds=7)["timeout_seconds"] == 7


def test_field_without_attribute_is_an_error():
    class Wider(Config):
        color: str = ""

    with pytest.raises(AttributeError):
        domain_value(Spec, Wider())
    with pytest.raises(AttributeError):
        wire_fields(Wider, SPEC)


def test_definition_shows_specification_name_and_times():
    class Thing(msgspec.Struct):
        name: QueueName
        spec: Spec
        version: int
        created_at_ms: int

    class ThingOut(MappedDefinition):
        name: str
        timeout_seconds: float
        version: int
        created_at: str

    shown = ThingOut.from_domain(Thing(QueueName("orders"), SPEC, 3, 0))

    assert shown.model_dump() == {
        "name": "orders",
        "timeout_seconds": 1.5,
        "version": 3,
        "created_at": "1970-01-01T00:00:00.000Z",
    }


def test_constant_needs_no_attribute():
    class Constant(Mapped):
        kind: Literal["spec"] = "spec"

    assert Constant.from_domain(SPEC).kind == "spec"


def test_nested_value_has_its_own_mapping():
    class PartOut(Mapped):
        text: str

    class Outer(Mapped):
        parts: list[PartOut]
        part: PartOut | None

    assert Outer.from_domain(SPEC).model_dump() == {"parts": [{"text": "a"}], "part": {"text": "b"}}


NOUNS = {
    "queue": (queues.QUEUES, {"partitions": 4}),
    "stream": (streams.STREAMS, {}),
    "group": (
        groups.GROUPS,
        {"stream": "clicks", "start": "time", "start_time": "2026-01-31T12:00Z"},
    ),
    "webhook": (
        webhooks.WEBHOOKS,
        {"source": "queue:orders", "url": "https://example.com", "headers": {"x": "y"}},
    ),
    "namespace": (namespaces.NAMESPACES, {"rates": {"calls_per_second": 5}, "queues_max": 3}),
}


@pytest.mark.parametrize("noun", NOUNS)
def test_configuration_of_noun_round_trips(noun):
    declared, fields = NOUNS[noun]
    config = declared.schemas.config.model_validate(fields)

    spec = config.to_domain()

    assert declared.schemas.config.from_domain(spec).to_domain() == spec
    assert definition_router(declared).routes
