"""What a stream's owner set at this door and the engine has no use for: the specification's annotations.

distribution         AUTO or USER_PARTITION_KEY                AUTO: records go to any shard
warm_throughput      MiB/s                                     kept
metrics              words with commas                         kept
key                  a KMS key                                 kept; nothing is encrypted
policy               JSON text                                 kept; not in effect
"""

from msgspec.structs import replace

from storage.domain.streams import StreamSpec

DISTRIBUTION = "distribution"
WARM_THROUGHPUT = "warm_throughput"
METRICS = "metrics"
KEY = "key"
POLICY = "policy"

_PREFIX = "kinesis."


def annotation(spec: StreamSpec, name: str) -> str | None:
    """What was kept under a name."""
    return spec.annotations.get(_PREFIX + name)


def annotated(spec: StreamSpec, name: str, text: str | None) -> StreamSpec:
    """The specification with `text` kept under the name; None keeps nothing there."""
    kept = {key: value for key, value in spec.annotations.items() if key != _PREFIX + name}
    if text is not None:
        kept[_PREFIX + name] = text
    return spec if kept == spec.annotations else replace(spec, annotations=kept)
