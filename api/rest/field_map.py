"""Mapping between schemas and domain values by the names of their fields.

    schema                     domain
    timeout_seconds            timeout_ms        a duration, or several
    created_at, start_time     created_at_ms     a time
    tags                       tags              the same; a list is a tuple, a name its text, a schema its own mapping

A field that is not among them is passed by keyword. A field that maps to nothing raises AttributeError, in any test.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

from pydantic import AwareDatetime, BaseModel

from api.native.fields import moment_ms, optional_ms, rfc3339
from api.native.former_names import deprecated_members
from api.rest.schema_base import Config, DefinitionConfig, in_seconds
from storage.domain.names import ScopedName

T = TypeVar("T")
Read = Callable[[Any], Any]


class Mapped(BaseModel):
    """Base of schemas that show a domain value.

    `renamed`: attributes of the fields whose names differ otherwise.
    """

    renamed: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def from_domain(cls, value: Any, **others: Any) -> Self:
        """Return the value with its fields on the wire."""
        return cls.mapped(value, **others)

    @classmethod
    def mapped(cls, *values: object, **others: Any) -> Self:
        """Return the fields on the wire, each from the first of the values that has it."""
        return cls(**wire_fields(cls, *values, **others))


class MappedDefinition(Mapped):
    """Base of schemas that show a definition: its specification, name, version and times."""

    @classmethod
    def from_domain(cls, value: Any, **others: Any) -> Self:
        """Return the definition with its fields on the wire."""
        return cls.mapped(value.spec, value, **others)


class MappedConfig(Mapped, Config):
    """Base of parts of configurations that map to a domain type."""

    domain: ClassVar[type[Any]]

    def to_domain(self) -> Any:
        """Return the domain value, which the engine validates."""
        return domain_value(self.domain, self)


class MappedDefinitionConfig(MappedConfig, DefinitionConfig):
    """Base of the complete configuration of an object."""


def wire_fields(schema: type[BaseModel], *values: object, **others: Any) -> dict[str, Any]:
    """Return the fields of `schema`, each from the first of the values that has it."""
    kinds = tuple(type(value) for value in values)
    plan = _readers(schema, kinds, frozenset(others))
    return {name: read(values[index]) for name, index, read in plan} | others


def domain_value(kind: Callable[..., T], config: BaseModel, **others: Any) -> T:
    """Return a domain value with the fields of a configuration; `others` replace attributes."""
    fields = {
        attribute: _to_domain(getattr(config, name), is_duration=_is_duration(name, attribute))
        for name, attribute in _attributes(kind, type(config), frozenset(others))
    }
    return kind(**fields, **others)


def _candidates(schema: type[BaseModel], name: str) -> tuple[str, ...]:
    """Return the attributes that a field may have in the domain."""
    renamed: Mapping[str, str] = getattr(schema, "renamed", {})
    if name in renamed:
        return (renamed[name],)
    return (name.replace("_seconds", "_ms"), name, f"{name}_ms")


def _is_duration(name: str, attribute: str) -> bool:
    return "_seconds" in name and "_ms" in attribute


# ── To the wire ──


@cache
def _readers(
    schema: type[BaseModel], kinds: tuple[type, ...], others: frozenset[str]
) -> tuple[tuple[str, int, Read], ...]:
    """Return (field, index of the value, reader) of the fields that are not among `others`."""
    optional = deprecated_members(schema) | _constants(schema)
    readers = []
    for name in schema.model_fields.keys() - others:
        reader = _reader(schema, name, kinds)
        if reader is not None:
            readers.append((name, *reader))
        elif name not in optional:
            raise AttributeError(f"{name} is in none of {[kind.__name__ for kind in kinds]}")
    return tuple(readers)


def _constants(schema: type[BaseModel]) -> set[str]:
    """Return the fields that have one value, such as `Literal["parked"]`."""
    fields = schema.model_fields.items()
    return {name for name, field in fields if get_origin(field.annotation) is Literal}


def _reader(schema: type[BaseModel], name: str, kinds: tuple[type, ...]) -> tuple[int, Read] | None:
    for index, kind in enumerate(kinds):
        for attribute in _candidates(schema, name):
            if hasattr(kind, attribute):
                convert = _conversion(schema, name, attribute)
                return index, partial(_read, attribute, convert)
    return None


def _read(attribute: str, convert: Read, value: object) -> Any:
    return convert(getattr(value, attribute))


def _conversion(schema: type[BaseModel], name: str, attribute: str) -> Read:
    annotation = schema.model_fields[name].annotation
    if _is_duration(name, attribute):
        return _to_seconds
    if attribute.endswith("_ms"):
        return _to_moment if AwareDatetime in _types_in(annotation) else _to_time
    return partial(_to_wire, _schema_in(annotation))


def _to_seconds(ms: Any) -> Any:
    if isinstance(ms, tuple):
        return [in_seconds(each) for each in ms]
    return None if ms is None else in_seconds(ms)


def _to_time(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)


def _to_moment(ms: int | None) -> datetime | None:
    return None if ms is None else datetime.fromisoformat(rfc3339(ms))


def _to_wire(schema: Any, value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_to_wire(schema, each) for each in value]
    if isinstance(value, ScopedName):
        return value.name
    return value if value is None or schema is None else schema.from_domain(value)


def _schema_in(annotation: Any) -> Any:
    """Return the schema that an annotation has, such as `list[TagOut] | None`."""
    return next((kind for kind in _types_in(annotation) if hasattr(kind, "from_domain")), None)


def _types_in(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in get_args(annotation):
        yield from _types_in(inner)


# ── To the domain ──


@cache
def _attributes(
    kind: Any, config: type[BaseModel], others: frozenset[str]
) -> tuple[tuple[str, str], ...]:
    """Return (field, attribute) of what the configuration has, except of `others`."""
    fields = config.model_fields.keys() - deprecated_members(config)
    pairs = [(name, _attribute(kind, config, name, others)) for name in fields]
    return tuple((name, attribute) for name, attribute in pairs if attribute not in others)


def _attribute(kind: Any, config: type[BaseModel], name: str, others: frozenset[str]) -> str:
    for attribute in _candidates(config, name):
        if attribute in others or hasattr(kind, attribute):
            return attribute
    raise AttributeError(f"{name} is not in {kind.__name__}")


def _to_domain(value: Any, *, is_duration: bool) -> Any:
    if isinstance(value, list):
        return tuple(_to_domain(each, is_duration=is_duration) for each in value)
    if isinstance(value, datetime):
        return moment_ms(value)
    if is_duration:
        return optional_ms(value)
    return value.to_domain() if hasattr(value, "to_domain") else value
