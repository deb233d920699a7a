"""ARNs of streams and of their registered consumers.

arn:aws:kinesis:<region>:<account>:stream/<name>
arn:aws:kinesis:<region>:<account>:stream/<name>/consumer/<consumer>:<second of its registration>
"""

import re
from typing import NamedTuple

_ARN = re.compile(
    r"arn:aws[^:]*:kinesis:[^:]*:(?P<account>\d{12}):stream/(?P<stream>[a-zA-Z0-9_.-]{1,128})"
    r"(?:/consumer/(?P<consumer>[a-zA-Z0-9_.-]{1,128}):(?P<second>\d{1,19}))?"
)


class NamedResource(NamedTuple):
    """The resource that an ARN names: a stream, or one of its consumers."""

    account: str
    stream: str
    consumer: str | None
    second: int

    @property
    def is_consumer(self) -> bool:
        """Return whether it names a consumer."""
        return self.consumer is not None


def read_arn(arn: str) -> NamedResource | None:
    """Parse an ARN; None when it is not one of Kinesis. The region is ignored."""
    match = _ARN.fullmatch(arn)
    if match is None:
        return None
    return NamedResource(
        match["account"], match["stream"], match["consumer"], int(match["second"] or 0)
    )


def stream_arn(region: str, account: str, stream: str) -> str:
    """Return the ARN of a stream."""
    return f"arn:aws:kinesis:{region}:{account}:stream/{stream}"


def consumer_arn(stream: str, consumer: str, registered_ms: int) -> str:
    """Return the ARN of a consumer of the stream with the ARN `stream`."""
    return f"{stream}/consumer/{consumer}:{registered_ms // 1_000}"
