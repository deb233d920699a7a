"""Former names of members, accepted and returned beside the current ones.

ADR 0053: for one release. The next release deletes this module, and what uses it.
"""

from operator import attrgetter
from typing import Any

from fastapi import Response
from msgspec import Meta
from pydantic import BaseModel, Field, computed_field

_DEPRECATED = {"deprecated": True}


def _description(name: str) -> str:
    return f"Former name of `{name}`, which replaces it."


def former_member(name: str) -> Meta:
    """Describe a former name of a msgspec struct's member `name`."""
    return Meta(description=_description(name), extra_json_schema=_DEPRECATED)


def former_field(name: str) -> Any:
    """Describe a former name of a pydantic model's field `name`, which has a value of its own."""
    return Field(description=_description(name), json_schema_extra={**_DEPRECATED})


def former_name(name: str, type_: Any) -> Any:
    """Declare a former name of a pydantic model's field `name`, which has its value."""
    declare = computed_field(
        return_type=type_, description=_description(name), json_schema_extra={**_DEPRECATED}
    )
    return declare(property(attrgetter(name)))


DEPRECATION = "@1795564800"
"""Value of the `Deprecation` header (RFC 9745): the time from which a member is deprecated."""


PAUSE_INSTEAD = "Replaced by `PUT` and `DELETE …/pause`."
"""Description of the members of configurations that paused their object."""


def deprecated_member(description: str) -> Any:
    """Describe a pydantic model's field that has no current name."""
    return Field(description=description, json_schema_extra={**_DEPRECATED})


def deprecated_members(config: type[BaseModel]) -> set[str]:
    """Return the names of a configuration's deprecated members."""
    fields = config.model_fields.items()
    return {name for name, field in fields if field.json_schema_extra == _DEPRECATED}


def note_former_members(response: Response, config: BaseModel) -> None:
    """Add the header `Deprecation` to the answer if the request has a deprecated member."""
    if config.model_fields_set & deprecated_members(type(config)):
        response.headers["deprecation"] = DEPRECATION
