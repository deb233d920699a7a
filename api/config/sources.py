"""What a process's settings are, and who said them, for operators to read. Secrets are stars.

`millstream up` tells its processes all their settings through the environment, and with them where it had each from.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import AliasChoices
from pydantic_settings import DotEnvSettingsSource, EnvSettingsSource
from pydantic_settings import TomlConfigSettingsSource as TomlSource

from api.config.settings import ORIGINS, Settings, read_origins, read_settings

PREFIX = "MILLSTREAM_"
TOML = "millstream.toml"
DOTENV = ".env"
DEFAULT = "default"
COMMAND = "millstream up"
"""An option that was given to it, or what it decided."""

_CREDENTIALS = re.compile(r"//[^/@]*@")


class SettingTold(NamedTuple):
    """A setting as text, and where it comes from."""

    name: str
    value: str
    origin: str


def told_settings(settings: Settings) -> list[SettingTold]:
    """Every setting of this process, by name."""
    origins = json.loads(read_origins()) or origins_of(settings)
    return [
        SettingTold(name, spelled(value), origins.get(name, DEFAULT))
        for name, value in sorted(settings)
    ]


def spelled(value: Any) -> str:
    """A setting's value as text, without the credentials that an address may have."""
    if value is None:
        return ""
    return _CREDENTIALS.sub("//**********@", str(value))  # that of a SecretStr is stars


def with_origins(settings: Settings, environment: dict[str, str]) -> dict[str, str]:
    """The environment of a process to be started, which tells it where its settings are from."""
    return environment | {ORIGINS: json.dumps(origins_of(settings))}


def origins_of(settings: Settings) -> dict[str, str]:
    """Who said each setting: COMMAND where no source says what it is."""
    declared, sources = read_settings(), sources_now()
    return {
        name: origin_of(name, sources) if value == getattr(declared, name) else COMMAND
        for name, value in settings
    }


def sources_now() -> dict[str, Mapping[str, Any]]:
    """What each source says, the strongest first."""
    return {
        "environment": EnvSettingsSource(Settings)(),
        DOTENV: DotEnvSettingsSource(Settings)(),
        TOML: TomlSource(Settings)(),
    }


def origin_of(name: str, sources: Mapping[str, Mapping[str, Any]]) -> str:
    """The first source that says it."""
    names = names_of(name)
    return next(
        (origin for origin, said in sources.items() if names & {key.lower() for key in said}),
        DEFAULT,
    )


def names_of(field: str) -> set[str]:
    """What a setting is called, in lower case."""
    alias = Settings.model_fields[field].validation_alias
    others = alias.choices if isinstance(alias, AliasChoices) else []
    return {field, f"{PREFIX}{field}".lower()} | {str(one).lower() for one in others}
