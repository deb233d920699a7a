"""Reference page of the settings, from their declarations."""

from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo

from api.cli.reference.markdown import code, page, table
from api.config.settings import Settings

INTRO = """\
You can set each setting as an environment variable, as a line of `.env`, or as a key of `millstream.toml`; both files are read from the folder where the command is started. Some settings are also options of `millstream up`. The order of precedence is: option, environment, `.env`,
`millstream.toml`, default. In `millstream.toml`, a setting has its name without the prefix, in lower case: `port = 9000`.

`millstream config show --origin` prints the value and source of each setting; `millstream config check` finds misspelled settings. Changes take effect after a restart.

The client settings of the command line (`MILLSTREAM_URL`, `MILLSTREAM_API_KEY`, `MILLSTREAM_CA_FILE`, `MILLSTREAM_PROFILE`) are described in [the command line](cli.md).
"""
KINDS = {int: "number", bool: "true or false", Path: "path", str: "text", SecretStr: "secret"}


def settings_page() -> str:
    """Return the page of every setting of a service."""
    rows = [
        (
            ", ".join(code(variable) for variable in _variables(name, field)),
            _kind(field),
            _default(field.default),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]
    return page("Settings", INTRO, table(("variable", "is", "default", "description"), rows))


def _default(value: Any) -> str:
    if value in (None, ""):
        return "none"
    return code(str(value).lower() if isinstance(value, bool) else str(value))


def _variables(name: str, field: FieldInfo) -> list[str]:
    alias = field.validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else []
    return [choice for choice in choices if isinstance(choice, str) and choice.isupper()] or [
        f"MILLSTREAM_{name.upper()}"
    ]


def _kind(field: FieldInfo) -> str:
    kind = _kind_of(field.annotation)
    bounds = {type(one).__name__: one for one in field.metadata}
    if "Ge" in bounds and "Le" in bounds:
        return f"{kind}, {bounds['Ge'].ge} to {bounds['Le'].le}"
    return f"{kind}, at least {bounds['Ge'].ge}" if "Ge" in bounds else kind


def _kind_of(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        return _kind_of(next(one for one in get_args(annotation) if one is not type(None)))
    if get_origin(annotation) is Literal:
        return " or ".join(code(str(one)) for one in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(code(str(one.value)) for one in annotation)
    return KINDS[annotation]
