"""Settings of a process with their sources, for operators. Secrets are shown as asterisks.

`millstream up` passes all settings to its processes through the environment, with the source of each.
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
"""An option of the command, or a value that it chose."""

_CREDENTIALS = re.compile(r"//[^/@]*@")


class SettingOrigin(NamedTuple):
    """A setting as text, with its source."""

    name: str
    value: str
    origin: str


def effective_settings(settings: Settings) -> list[SettingOrigin]:
    """Return every setting of this process, by name."""
    origins = json.loads(read_origins()) or origins_of(settings)
    return [
        SettingOrigin(name, setting_as_text(value), origins.get(name, DEFAULT))
        for name, value in sorted(settings)
    ]


def setting_as_text(value: Any) -> str:
    """Return a setting's value as text, without the credentials that an address may have."""
    if value is None:
        return ""
    return _CREDENTIALS.sub("//**********@", str(value))  # a SecretStr prints asterisks


def with_origins(settings: Settings, environment: dict[str, str]) -> dict[str, str]:
    """Return the environment of a process to start, with the sources of its settings."""
    return environment | {ORIGINS: json.dumps(origins_of(settings))}


def origins_of(settings: Settings) -> dict[str, str]:
    """Return the source of each setting; COMMAND if no source has its value."""
    declared, sources = read_settings(), sources_now()
    return {
        name: setting_source(name, sources) if value == getattr(declared, name) else COMMAND
        for name, value in settings
    }


def sources_now() -> dict[str, Mapping[str, Any]]:
    """Return the values of each source, in order of precedence."""
    return {
        "environment": EnvSettingsSource(Settings)(),
        DOTENV: DotEnvSettingsSource(Settings)(),
        TOML: TomlSource(Settings)(),
    }


def setting_source(name: str, sources: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the first source that sets a value."""
    names = names_of(name)
    return next(
        (origin for origin, said in sources.items() if names & {key.lower() for key in said}),
        DEFAULT,
    )


def names_of(field: str) -> set[str]:
    """Return the names of a setting, in lower case."""
    alias = Settings.model_fields[field].validation_alias
    others = alias.choices if isinstance(alias, AliasChoices) else []
    return {field, f"{PREFIX}{field}".lower()} | {str(one).lower() for one in others}
