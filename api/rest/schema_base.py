"""Shared parts of configuration schemas. Unknown fields are rejected."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Generic, Self, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)

from api.native.fields import to_ms, to_seconds
from storage.domain import limits

Item = TypeVar("Item")

Moment = Annotated[AwareDatetime, Field(strict=False)]
Seconds = Annotated[
    float,
    PlainSerializer(lambda seconds: to_seconds(to_ms(seconds)), return_type=int | float),
    Field(ge=0, le=limits.STREAM_RETENTION_MS_MAX // limits.SECOND_MS),
]
Bytes = Annotated[int, Field(ge=1, le=2**53 - 1)]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Tags = Annotated[dict[str, str], Field(description="Up to 50 user-defined tags.")]


MEASUREMENT = "Latest measurement; null if not requested, or not yet measured."


def in_seconds(ms: int) -> float:
    """Convert milliseconds to seconds."""
    return ms / limits.SECOND_MS


class ListPage(BaseModel, Generic[Item]):
    """Base of a page of a list. `next_cursor` is null on the last page."""

    items: list[Item]
    next_cursor: str | None


class Config(BaseModel):
    """Base of configuration schemas, strict about types and names."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DefinitionConfig(Config):
    """Base of the complete configuration of an object, the body of its PUT."""

    @classmethod
    @abstractmethod
    def from_domain(cls, value: Any) -> Self:
        """Return the configuration of a specification."""

    @abstractmethod
    def to_domain(self) -> Any:
        """Return the specification, which the engine validates."""

    def comparable(self) -> Self:
        """Return the configuration as `from_domain` returns it, for comparisons."""
        return self

    def put_options(self) -> Mapping[str, Any]:
        """Return further arguments of the engine's put."""
        return {}


ConfigT = TypeVar("ConfigT", bound=Config)


def valid(config: type[ConfigT], values: dict[str, Any]) -> ConfigT:
    """Validate a configuration with values from a request.

    Raises RequestValidationError, as FastAPI does for a body.
    """
    try:
        return config.model_validate(values)
    except ValidationError as error:
        faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(faults) from error


def merged(before: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Apply an RFC 7396 merge patch to `before`."""
    after = dict(before)
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            after[name] = merged(after.get(name) or {}, value)
        else:
            after[name] = value
    return after
