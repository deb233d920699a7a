from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.hmac_algorithm import HmacAlgorithm
from ..models.signature_encoding import SignatureEncoding
from ..models.webhook_provider import WebhookProvider

T = TypeVar("T", bound="SourceWebhookOut")


@_attrs_define
class SourceWebhookOut:
    """Provider of the events; `secrets` shows how many there are.

    Attributes:
        provider (WebhookProvider): Service whose signatures are verified; `hmac` is any other that signs with a secret.
        secrets (list[str]):
        tolerance_seconds (float):
        headers (list[str]):
        signature_header (None | str):
        algorithm (HmacAlgorithm): Hash function of an HMAC.
        encoding (SignatureEncoding): Text encoding of a signature.
        prefix (str):
        timestamp_header (None | str):
        id_header (None | str):
    """

    provider: WebhookProvider
    secrets: list[str]
    tolerance_seconds: float
    headers: list[str]
    signature_header: None | str
    algorithm: HmacAlgorithm
    encoding: SignatureEncoding
    prefix: str
    timestamp_header: None | str
    id_header: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        provider = self.provider.value

        secrets = self.secrets

        tolerance_seconds = self.tolerance_seconds

        headers = self.headers

        signature_header: None | str
        signature_header = self.signature_header

        algorithm = self.algorithm.value

        encoding = self.encoding.value

        prefix = self.prefix

        timestamp_header: None | str
        timestamp_header = self.timestamp_header

        id_header: None | str
        id_header = self.id_header

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "provider": provider,
                "secrets": secrets,
                "tolerance_seconds": tolerance_seconds,
                "headers": headers,
                "signature_header": signature_header,
                "algorithm": algorithm,
                "encoding": encoding,
                "prefix": prefix,
                "timestamp_header": timestamp_header,
                "id_header": id_header,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        provider = WebhookProvider(d.pop("provider"))

        secrets = cast(list[str], d.pop("secrets"))

        tolerance_seconds = d.pop("tolerance_seconds")

        headers = cast(list[str], d.pop("headers"))

        def _parse_signature_header(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        signature_header = _parse_signature_header(d.pop("signature_header"))

        algorithm = HmacAlgorithm(d.pop("algorithm"))

        encoding = SignatureEncoding(d.pop("encoding"))

        prefix = d.pop("prefix")

        def _parse_timestamp_header(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        timestamp_header = _parse_timestamp_header(d.pop("timestamp_header"))

        def _parse_id_header(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        id_header = _parse_id_header(d.pop("id_header"))

        source_webhook_out = cls(
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

        source_webhook_out.additional_properties = d
        return source_webhook_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
