"""Clients of Amazon's SDK for Python, unmodified but for their endpoint."""

from typing import Any

import boto3
from botocore.config import Config

ONCE = {"total_max_attempts": 1}
"""So that a failure is seen."""


def aws_client(
    service: str,
    url: str,
    *,
    pair: tuple[str, str] = ("test", "test"),
    ca: str | None = None,
    **config: Any,
) -> Any:
    """boto3's client of a service. `pair`: an access key and its secret. `config`: as botocore's Config; it tries once
    unless that says more."""
    key_id, secret = pair
    return boto3.client(
        service,
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        verify=ca,
        config=Config(**{"retries": ONCE, **config}),
    )
