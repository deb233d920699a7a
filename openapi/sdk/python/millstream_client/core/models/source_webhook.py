from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.hmac_algorithm import HmacAlgorithm
from ..models.signature_encoding import SignatureEncoding
from ..models.webhook_provider import WebhookProvider
from ..types import UNSET, Unset

T = TypeVar("T", bound="SourceWebhook")


@_attrs_define
class SourceWebhook:
    """Provider of the events, and how its requests are verified.

    Attributes:
        provider (WebhookProvider): Service whose signatures are verified; `hmac` is any other that signs with a secret.
        secrets (list[str] | None | Unset): Secrets that the provider signs with: one, or two during a rotation. They
            are stored encrypted and never returned; if omitted, they are unchanged.
        tolerance_seconds (float | Unset): Maximum age of a signature, for providers that sign the time. Default: 300.0.
        headers (list[str] | Unset): Request headers that are stored with each event, such as `X-GitHub-Event`.
        signature_header (None | str | Unset): `hmac` only: header with the signature.
        algorithm (HmacAlgorithm | Unset): Hash function of an HMAC.
        encoding (SignatureEncoding | Unset): Text encoding of a signature.
        prefix (str | Unset): `hmac` only: text before the signature, such as `sha256=`. Default: ''.
        timestamp_header (None | str | Unset): `hmac` only: header with the time in seconds; the signature then covers
            `<time>.<body>`.
        id_header (None | str | Unset): `hmac` only: header with the event's id, for deduplication.
    """

    provider: WebhookProvider
    secrets: list[str] | None | Unset = UNSET
    tolerance_seconds: float | Unset = 300.0
    headers: list[str] | Unset = UNSET
    signature_header: None | str | Unset = UNSET
    algorithm: HmacAlgorithm | Unset = UNSET
    encoding: SignatureEncoding | Unset = UNSET
    prefix: str | Unset = ""
    timestamp_header: None | str | Unset = UNSET
    id_header: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        provider = self.provider.value

        secrets: list[str] | None | Unset
        if isinstance(self.secrets, Unset):
            secrets = UNSET
        elif isinstance(self.secrets, list):
            secrets = self.secrets

        else:
            secrets = self.secrets

        tolerance_seconds = self.tolerance_seconds

        headers: list[str] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers

        signature_header: None | str | Unset
        if isinstance(self.signature_header, Unset):
            signature_header = UNSET
        else:
            signature_header = self.signature_header

        algorithm: str | Unset = UNSET
        if not isinstance(self.algorithm, Unset):
            algorithm = self.algorithm.value

        encoding: str | Unset = UNSET
        if not isinstance(self.encoding, Unset):
            encoding = self.encoding.value

        prefix = self.prefix

        timestamp_header: None | str | Unset
        if isinstance(self.timestamp_header, Unset):
            timestamp_header = UNSET
        else:
            timestamp_header = self.timestamp_header

        id_header: None | str | Unset
        if isinstance(self.id_header, Unset):
            id_header = UNSET
        else:
            id_header = self.id_header

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "provider": provider,
            }
        )
        if secrets is not UNSET:
            field_dict["secrets"] = secrets
        if tolerance_seconds is not UNSET:
            field_dict["tolerance_seconds"] = tolerance_seconds
        if headers is not UNSET:
            field_dict["headers"] = headers
        if signature_header is not UNSET:
            field_dict["signature_header"] = signature_header
        if algorithm is not UNSET:
            field_dict["algorithm"] = algorithm
        if encoding is not UNSET:
            field_dict["encoding"] = encoding
        if prefix is not UNSET:
            field_dict["prefix"] = prefix
        if timestamp_header is not UNSET:
            field_dict["timestamp_header"] = timestamp_header
        if id_header is not UNSET:
            field_dict["id_header"] = id_header

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        provider = WebhookProvider(d.pop("provider"))

        def _parse_secrets(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                secrets_type_0 = cast(list[str], data)

                return secrets_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        secrets = _parse_secrets(d.pop("secrets", UNSET))

        tolerance_seconds = d.pop("tolerance_seconds", UNSET)

        headers = cast(list[str], d.pop("headers", UNSET))

        def _parse_signature_header(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        signature_header = _parse_signature_header(d.pop("signature_header", UNSET))

        _algorithm = d.pop("algorithm", UNSET)
        algorithm: HmacAlgorithm | Unset
        if isinstance(_algorithm, Unset):
            algorithm = UNSET
        else:
            algorithm = HmacAlgorithm(_algorithm)

        _encoding = d.pop("encoding", UNSET)
        encoding: SignatureEncoding | Unset
        if isinstance(_encoding, Unset):
            encoding = UNSET
        else:
            encoding = SignatureEncoding(_encoding)

        prefix = d.pop("prefix", UNSET)

        def _parse_timestamp_header(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        timestamp_header = _parse_timestamp_header(d.pop("timestamp_header", UNSET))

        def _parse_id_header(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        id_header = _parse_id_header(d.pop("id_header", UNSET))

        source_webhook = cls(
            provider=provider,
            secrets=secrets,
            tolerance_seconds=tolerance_seconds,
            headers=headers,
            signature_header=signature_header,
            algorithm=algorithm,
            encoding=encoding,
            prefix=prefix,
            timestamp_header=timestamp_header,
            id_header=id_header,
        )

        return source_webhook
