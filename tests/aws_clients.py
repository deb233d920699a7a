"""Unmodified AWS SDK clients, with only the endpoint changed."""

from typing import Any

import boto3
from botocore.config import Config

WITHOUT_RETRIES = {"total_max_attempts": 1}
"""No retries, so that failures are visible."""


def aws_client(
    service: str,
    url: str,
    *,
    pair: tuple[str, str] = ("test", "test"),
    ca: str | None = None,
    **config: Any,
) -> Any:
    """boto3's client of a service.

    `pair`: an access key and its secret. `config`: as botocore's Config; there are no retries
    unless it sets some.
    """
    key_id, secret = pair
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        verify=ca,
        config=Config(**{"retries": WITHOUT_RETRIES, **config}),
    )
