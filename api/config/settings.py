"""Settings of a Millstream process, read once.

Precedence: command line, environment (`MILLSTREAM_*`, `REDIS_URL`, `DATABASE_URL`), `.env`,
`millstream.toml`, the defaults here.
"""

import os
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from api.config.jwt_issuers import JwtIssuerSetting, read_issuers
from storage.access.secret_box import SecretBox
from storage.domain.access.egress import Egress
from storage.domain.limits import (
    DAY_MS,
    LISTEN_GRACE_MS,
    MIN_INSYNC_REPLICAS_MIN,
    POSTGRES_GRACE_MS,
    REPLICA_SET_MEMBERS_MAX,
    SECOND_MS,
)
from storage.domain.replication.member_urls import zones_by_address
from storage.settings import (
    Durability,
    ReplicatedBy,
    StorageSettings,
    check_archive_url,
    check_database_url,
    check_durability,
    check_redis_url,
)

_ORIGIN = re.compile(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")
_ACCESS_RATES = {"off": 0.0, "sampled": 0.01, "all": 1.0}
_SERVICE_LINK = re.compile(r"(tcp|udp|sctp)://.*")
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})


class Settings(BaseSettings):
    """One deployment's settings; each is also an option of `millstream up`."""

    model_config = SettingsConfigDict(
        env_prefix="MILLSTREAM_",
        env_file=".env",
        toml_file="millstream.toml",
        extra="ignore",
        populate_by_name=True,
        frozen=True,
        hide_input_in_errors=True,  # input may contain secrets
    )

    host: str = Field(
        default="127.0.0.1",
        description="Address to listen on. Non-loopback addresses require API keys.",
    )
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port to listen on; 0 selects a free port."
    )
    data: Path = Field(
        default=Path(".millstream"),
        description="Data directory of `millstream up`, also used by other commands.",
    )
    workers: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Number of API processes on this machine; they share one listening socket. Default: 1 on one "
        "or two cores, otherwise two fewer than there are cores (affinity- and cgroup-aware); at most 8, and at most "
        "one for each GiB of memory.",
    )
    ephemeral: bool = Field(
        default=False, description="`millstream up` deletes all data when it exits."
    )
    auth: Literal["auto", "open", "keys"] = Field(
        default="auto",
        description="Authentication mode. open: none (loopback only). keys: a credential "
        "is required. auto: open on loopback, otherwise keys.",
    )
    insecure: bool = Field(
        default=False,
        description="Listen on non-loopback addresses without credentials. Use only "
        "behind a proxy that authenticates clients.",
    )
    durability: Durability = Field(
        default="always",
        description="always: acknowledged data is on disk. everysec: a power failure can "
        "lose the last second or two. replicated: acknowledged data is on the disks of "
        "enough stores to survive the loss of a machine. External stores must be configured "
        "accordingly.",
    )
    min_insync_replicas: int | None = Field(
        default=None,
        ge=MIN_INSYNC_REPLICAS_MIN,
        le=REPLICA_SET_MEMBERS_MAX,
        description="With durability=replicated: number of stores, the primary counted, that must "
        "have a write on disk before it is acknowledged. Default: a majority of them.",
    )
    replicated_by: ReplicatedBy = Field(
        default="members",
        description="With durability=replicated: members: the stores of redis_url, whose primary "
        "Millstream chooses. engine: a managed store that replicates each write before it answers, "
        "such as MemoryDB.",
    )
    store_zones: str = Field(
        default="",
        description="Zones of the stores, comma-separated: store-1:6379=zone-a,store-2:6379=zone-b. "
        "`millstream doctor` warns if writes would stop with one zone.",
    )
    server: Literal["bundled", "path"] = Field(
        default="bundled",
        description="Valkey to start: the bundled one, or a valkey-server or redis-server on PATH.",
    )
    redis_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("MILLSTREAM_REDIS_URL", "REDIS_URL", "redis_url"),
        description="External Valkey or Redis: redis://, rediss://, unix://; several hosts, "
        "redis://:password@a:6379,b:6379,c:6379/0, for durability=replicated. If unset, "
        "`millstream up` starts one.",
    )
    database_url: SecretStr | None = Field(
        default=None,
        validation_alias=AliasChoices("MILLSTREAM_DATABASE_URL", "DATABASE_URL", "database_url"),
        description="External Postgres: postgresql://, with all its hosts, separated by commas, if it "
        "fails over. If unset, `millstream up` starts one.",
    )
    postgres_grace_seconds: int = Field(
        default=POSTGRES_GRACE_MS // SECOND_MS,
        ge=LISTEN_GRACE_MS // SECOND_MS,
        le=DAY_MS // SECOND_MS,
        description="Time for which a process without Postgres serves what it knows, while the hot "
        "store shows that nothing was changed.",
    )
    archive_url: str | None = Field(
        default=None,
        description="Archive location: file:///directory or s3://bucket/prefix. "
        "`millstream up` uses a directory of its data by default; 'off' "
        "disables the archive.",
    )
    archive_shared: bool = Field(
        default=False,
        description="The directory of a file:// archive is shared by the workers and all executors of the Spark "
        "cluster. Not needed for s3://.",
    )
    memory_mb: int | None = Field(
        default=None,
        ge=0,
        description="Memory limit of the Valkey that `millstream up` starts; default: "
        "half of the available memory (cgroup-aware); 0: no limit. Writes are"
        " rejected from 85 % of it.",
    )
    replicas: int | None = Field(
        default=None,
        description="Replicas of the Valkey that `millstream up` starts, on the same machine: 2 or 4, "
        "which makes three or five stores with durability=replicated; 1 for two stores, where writes stop "
        "while either is away. The data directory remembers it.",
    )
    spark: Literal["auto", "wait", "off"] = Field(
        default="auto",
        description="Worker of `millstream up`. auto: runs if PySpark is installed. wait: runs, with "
        "small replays and back-tests only until PySpark is installed. off: does not run.",
    )
    spark_master: str = Field(
        default="local[*]", description="Spark master: local[N], spark://host:port, k8s://…"
    )
    spark_conf_file: Path | None = Field(
        default=None,
        description="Options of Spark for this site, in the syntax of spark-defaults.conf: size of "
        "executors, address and ports of the driver, security, event log. "
        "docs/how-to/spark-cluster.md names those that cannot be set.",
    )
    spark_environment: str | None = Field(
        default=None,
        description="Address of a Python environment for the executors of a cluster, made by "
        "`millstream spark pack`: a path or URL that they can read. If unset, Millstream has to be installed "
        "there.",
    )
    spark_memory_mb: int = Field(
        default=1024, ge=512, description="Memory of the worker's Spark driver."
    )
    aws_region: str = Field(
        default="us-east-1",
        pattern=r"^[a-z0-9-]{1,32}$",
        description="Region in ARNs. Requests signed for any other region are accepted as well.",
    )
    limits: Literal["native", "aws"] = Field(
        default="native",
        description="'aws': the Kinesis-compatible API enforces AWS's rate limits, per "
        "process; the SQS-compatible API rejects the creation of a queue "
        "whose name was deleted within the last minute.",
    )
    secret_keys: SecretStr | None = Field(
        default=None,
        description="Comma-separated keys that encrypt stored secrets, each 32 bytes in "
        "base64. The first key encrypts, all keys decrypt. `millstream up` "
        "generates one.",
    )
    secret_keys_file: Path | None = Field(
        default=None, description="File with the secret keys, separated by commas or lines."
    )
    webhook_allow: str = Field(
        default="",
        description="Webhook targets allowed in addition to ports 80 and 443 of the "
        "public internet: comma-separated hosts, addresses or networks, each "
        "with or without a port. 127.0.0.1 allows this machine, also over "
        "plain http.",
    )
    jwt_issuers: str = Field(
        default="",
        description="Trusted JWT issuers: a JSON list of objects with issuer, audience, "
        "jwks_url, namespace or namespace_claim, roles or roles_claim.",
    )
    ssl_certfile: Path | None = Field(
        default=None, description="PEM certificate with its chain; enables https."
    )
    ssl_keyfile: Path | None = Field(
        default=None, description="Private key of the certificate, unless ssl_certfile contains it."
    )
    ssl_keyfile_password: SecretStr | None = Field(
        default=None, description="Password of ssl_keyfile."
    )
    ssl_ca_certs: Path | None = Field(
        default=None, description="PEM file of the CAs that sign client certificates."
    )
    ssl_cert_reqs: Literal["none", "optional", "required"] = Field(
        default="none",
        description="Whether clients must present a certificate signed by ssl_ca_certs.",
    )
    cors_origins: str = Field(
        default="",
        description="Allowed CORS origins, comma-separated: https://app.example.com. "
        "Credentials (cookies) are not allowed.",
    )
    public_url: str = Field(
        default="",
        description="Public URL of this deployment: https://queues.example.com. Queue "
        "URLs and the dashboard's examples start with it. If unset, they use "
        "the host of the request, and https if the service uses TLS or "
        "`X-Forwarded-Proto` is https.",
    )
    keep_alive_seconds: int = Field(
        default=120,
        ge=1,
        le=86_400,
        description="Idle timeout of connections. The idle timeout of clients and load "
        "balancers must be shorter; otherwise a call can meet a connection "
        "that is being closed.",
    )
    http2: bool = Field(
        default=True,
        description="Serve HTTP/2 as well as HTTP/1.1: by ALPN with TLS, otherwise to clients that "
        "begin with it (prior knowledge).",
    )
    otlp_endpoint: str | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "MILLSTREAM_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "otlp_endpoint"
        ),
        description="OTLP/HTTP endpoint for spans: http://collector:4318. Requires the "
        "extra otel; without it, tracing is disabled. The other OTEL_… "
        "variables apply as well.",
    )
    otlp_traces_endpoint: str | None = Field(
        default=None,
        validation_alias=AliasChoices(
            "MILLSTREAM_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "otlp_traces_endpoint",
        ),
        description="The same as a complete URL: http://collector:4318/v1/traces.",
    )
    otel_sdk_disabled: bool = Field(
        default=False,
        validation_alias=AliasChoices(
            "MILLSTREAM_OTEL_SDK_DISABLED", "OTEL_SDK_DISABLED", "otel_sdk_disabled"
        ),
        description="Disable tracing, whatever endpoints are set.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Minimum log level."
    )
    access_log: str = Field(
        default="off",
        description="Requests to log: off, all, sampled (one in a hundred), or a fraction"
        " from 0 to 1. Server errors are always logged.",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources in order of precedence; the first wins."""
        toml = TomlConfigSettingsSource(settings_cls)
        return init_settings, env_settings, dotenv_settings, toml

    @property
    def scheme(self) -> str:
        """The scheme of the service's own URL."""
        return "http" if self.ssl_certfile is None else "https"

    @field_validator("port", mode="before")
    @classmethod
    def _no_service_link(cls, value: object) -> object:
        """Ignore the port variable that Kubernetes sets for a Service named millstream.

        Every pod beside one gets MILLSTREAM_PORT=tcp://10.0.0.1:8080, which is not this setting.
        """
        is_link = isinstance(value, str) and _SERVICE_LINK.fullmatch(value)
        return cls.model_fields["port"].default if is_link else value

    @field_validator("redis_url", "database_url", mode="before")
    @classmethod
    def _nothing_is_none(cls, value: object) -> object:
        """Convert an empty variable, as compose and CI set it, to None."""
        return None if value == "" else value

    @field_validator("redis_url", "database_url")
    @classmethod
    def _check_store_url(cls, url: SecretStr | None, about: ValidationInfo) -> SecretStr | None:
        check = check_redis_url if about.field_name == "redis_url" else check_database_url
        if url is not None:
            check(url.get_secret_value())
        return url

    @field_validator("replicas")
    @classmethod
    def _check_replicas(cls, count: int | None) -> int | None:
        if count not in (None, 1, 2, 4):
            raise ValueError(
                f"{count} replicas are not supported: use 2 or 4. Three or five stores survive the loss of one or two;"
                " an even number of stores survives no more than one store fewer"
            )
        return count

    @property
    def stores(self) -> int:
        """Return the number of Valkeys that `millstream up` starts."""
        return 1 + (self.replicas or 0)

    @field_validator("archive_url")
    @classmethod
    def _check_archive_url(cls, url: str | None) -> str | None:
        if url and url != "off":
            check_archive_url(url)
        return url

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, word: str) -> str:
        address = word.removesuffix("/")
        if address and not _ORIGIN.fullmatch(address):
            raise ValueError(f"{word!r} is not an origin: use https://queues.example.com")
        return address

    @field_validator("access_log")
    @classmethod
    def _check_access_log(cls, word: str) -> str:
        _access_rate(word)
        return word

    @property
    def access_rate(self) -> float:
        """The proportion of requests in the access log."""
        return _access_rate(self.access_log)

    @property
    def traces_endpoint(self) -> str | None:
        """The URL that receives spans; None if tracing is disabled."""
        if self.otel_sdk_disabled:
            return None
        if self.otlp_traces_endpoint:
            return self.otlp_traces_endpoint
        return f"{self.otlp_endpoint.rstrip('/')}/v1/traces" if self.otlp_endpoint else None

    @property
    def listens_beyond_loopback(self) -> bool:
        """Return whether other machines can reach the service."""
        return self.host not in LOOPBACK_HOSTS

    @property
    def wants_credentials(self) -> bool:
        """Return whether callers must authenticate."""
        if self.auth == "auto":
            return self.listens_beyond_loopback and not self.insecure
        return self.auth == "keys"

    def storage(self) -> StorageSettings:
        """Return the settings of the storage package.

        Raises ValueError when a URL is missing, or the file of secret keys has none.
        """
        if self.redis_url is None or self.database_url is None:
            raise ValueError("set REDIS_URL and DATABASE_URL, or use `millstream up`")
        settings = StorageSettings(
            redis_url=self.redis_url.get_secret_value(),
            database_url=self.database_url.get_secret_value(),
            durability=self.durability,
            min_insync_replicas=self.min_insync_replicas,
            replicated_by=self.replicated_by,
            store_zones=zones_by_address(self.store_zones),
            postgres_grace_ms=self.postgres_grace_seconds * SECOND_MS,
            archive_url=None if self.archive_url == "off" else self.archive_url,
            secret_keys=self._secret_keys(),
            webhook_allow=self.webhook_allow_list(),
        )
        check_durability(settings)
        return settings

    def _secret_keys(self) -> tuple[str, ...]:
        text = self.secret_keys.get_secret_value() if self.secret_keys else ""
        if text or self.secret_keys_file is None:
            return _secret_keys_in(text)
        try:
            return _secret_keys_in(self.secret_keys_file.read_text())
        except OSError as error:
            raise ValueError(f"cannot read secret_keys_file: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"secret_keys_file: {error}") from None

    @field_validator("secret_keys")
    @classmethod
    def _check_secret_keys(cls, keys: SecretStr | None) -> SecretStr | None:
        if keys is not None:
            _secret_keys_in(keys.get_secret_value())
        return keys

    @field_validator("cors_origins")
    @classmethod
    def _check_cors_origins(cls, text: str) -> str:
        for word in _split_list(text):
            if not _ORIGIN.fullmatch(word):
                raise ValueError(f"{word!r} is not an origin: use https://app.example.com")
        return text

    @field_validator("store_zones")
    @classmethod
    def _check_store_zones(cls, text: str) -> str:
        zones_by_address(text)
        return text

    @field_validator("webhook_allow")
    @classmethod
    def _check_webhook_allow(cls, text: str) -> str:
        Egress.of(_split_list(text))
        return text

    @field_validator("jwt_issuers")
    @classmethod
    def _check_issuers(cls, text: str) -> str:
        read_issuers(text)
        return text

    def issuers(self) -> tuple[JwtIssuerSetting, ...]:
        """Return the trusted issuers of tokens."""
        return read_issuers(self.jwt_issuers)

    def cors_origins_list(self) -> tuple[str, ...]:
        """Return the origins in `cors_origins`."""
        return _split_list(self.cors_origins)

    def webhook_allow_list(self) -> tuple[str, ...]:
        """Return the entries of `webhook_allow`."""
        return _split_list(self.webhook_allow)


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _secret_keys_in(text: str) -> tuple[str, ...]:
    """Parse secret keys. Raises ValueError for an invalid one."""
    keys = _split_list(text)
    SecretBox(keys)
    return keys


def _access_rate(word: str) -> float:
    """Parse the proportion of logged requests. Raises ValueError if it is invalid."""
    if word in _ACCESS_RATES:
        return _ACCESS_RATES[word]
    try:
        rate = float(word)
    except ValueError:
        rate = -1
    if not 0 <= rate <= 1:
        raise ValueError("must be off, sampled, all, or a number from 0 to 1")
    return rate


def read_settings(**options: Any) -> Settings:
    """Read the settings of this process; `options` are the given command-line options."""
    return Settings(**{name: value for name, value in options.items() if value is not None})


ORIGINS = "MILLSTREAM_ORIGINS"
"""Variable in which `millstream up` passes the sources of settings to its processes."""


def read_origins() -> str:
    """Return the source of each setting by name, as JSON, as passed by `millstream up`."""
    return os.environ.get(ORIGINS, "{}")
