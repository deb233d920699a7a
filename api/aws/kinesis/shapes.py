"""Members that many operations share, with their constraints.

Names and bounds are those of the service model from which SDKs are generated; a test compares the two.
"""

from typing import Annotated

import msgspec
from msgspec import field

from api.aws.protocol.constraints import REQUIRED, bounds
from api.aws.protocol.shapes import Input, OperationOutput

_NAME_PATTERN = r"[a-zA-Z0-9_.-]+"
RECORDS_MAX = 500
DATA_BYTES_MAX = 10_485_760
KEY_CHARACTERS_MAX = 256
METRICS = (
    "IncomingBytes",
    "IncomingRecords",
    "OutgoingBytes",
    "OutgoingRecords",
    "WriteProvisionedThroughputExceeded",
    "ReadProvisionedThroughputExceeded",
    "IteratorAgeMilliseconds",
    "ALL",
)
PROVISIONED, ON_DEMAND = "PROVISIONED", "ON_DEMAND"
AUTO, USER_PARTITION_KEY = "AUTO", "USER_PARTITION_KEY"
NONE, KMS = "NONE", "KMS"
POSITIONS = (
    "AT_SEQUENCE_NUMBER",
    "AFTER_SEQUENCE_NUMBER",
    "TRIM_HORIZON",
    "LATEST",
    "AT_TIMESTAMP",
)

StreamNameIn = Annotated[str | None, bounds(1, 128, _NAME_PATTERN)]
StreamArnIn = Annotated[str | None, bounds(1, 2048, r"arn:aws.*:kinesis:.*:\d{12}:stream/\S+")]
ResourceArnIn = Annotated[
    str | None,
    bounds(1, 2048, r"arn:aws.*:kinesis:.*:\d{12}:.*(stream|channel|queue)/\S+"),
    REQUIRED,
]
StreamIdIn = Annotated[str | None, bounds(1, 24, r"[a-z0-9]{20}-[a-z0-9]{3}")]
ConsumerNameIn = Annotated[str | None, bounds(1, 128, _NAME_PATTERN)]
ConsumerArnIn = Annotated[
    str | None,
    bounds(
        1,
        2048,
        r"^(arn):aws.*:kinesis:.*:\d{12}:.*stream\/[a-zA-Z0-9_.-]+\/consumer\/[a-zA-Z0-9_.-]+:[0-9]+",
    ),
]
ShardIdIn = Annotated[str | None, bounds(1, 128, _NAME_PATTERN)]
HashKeyIn = Annotated[str | None, bounds(pattern=r"^(0|([1-9]\d{0,38}))$")]
SequenceNumberIn = Annotated[str | None, bounds(pattern=r"^(0|([1-9]\d{0,128}))$")]
PartitionKeyIn = Annotated[str | None, bounds(1, KEY_CHARACTERS_MAX)]
DataIn = Annotated[bytes | None, bounds(0, DATA_BYTES_MAX), REQUIRED]
PositionIn = Annotated[str | None, bounds(choices=POSITIONS), REQUIRED]
NextTokenIn = Annotated[str | None, bounds(1, 1_048_576)]
PageIn = Annotated[int | None, bounds(1, 10_000)]
PositiveIn = Annotated[int | None, bounds(1)]
NaturalIn = Annotated[int | None, bounds(0)]
RecordSizeIn = Annotated[int | None, bounds(1024, 10_240)]
StrategyIn = Annotated[str | None, bounds(choices=(AUTO, USER_PARTITION_KEY))]
EncryptionTypeIn = Annotated[str | None, bounds(choices=(NONE, KMS)), REQUIRED]
KeyIdIn = Annotated[str | None, bounds(1, 2048), REQUIRED]
MetricsIn = Annotated[list[Annotated[str, bounds(choices=METRICS)]] | None, bounds(1, 7), REQUIRED]
TagKey = Annotated[str, bounds(1, 128)]
TagsIn = Annotated[dict[TagKey, Annotated[str, bounds(0, 256)]] | None, bounds(1, 200)]
TagKeysIn = Annotated[list[TagKey] | None, bounds(1, 50), REQUIRED]
SecondsIn = float | None


class StreamIdentity(Input):
    """A stream, by its name or its ARN, or by both if they agree.

    StreamId is reserved and ignored.
    """

    stream_name: StreamNameIn = None
    stream_arn: StreamArnIn = field(name="StreamARN", default=None)
    stream_id: StreamIdIn = None


class ModeDetails(msgspec.Struct, rename="pascal"):
    """Capacity mode of a stream: billed by shard, or by use."""

    stream_mode: Annotated[str | None, bounds(choices=(PROVISIONED, ON_DEMAND)), REQUIRED] = None


class StartingPosition(Input):
    """Start position of a subscription."""

    type: PositionIn = None
    sequence_number: SequenceNumberIn = None
    timestamp: SecondsIn = None


class HashKeyRange(OperationOutput):
    """The hash keys of a shard, both inclusive."""

    starting_hash_key: str
    ending_hash_key: str


class SequenceNumberRange(OperationOutput):
    """A shard's sequence numbers; an open one has no end."""

    starting_sequence_number: str
    ending_sequence_number: str | None = None


class KinesisShardOut(OperationOutput):
    """A shard."""

    shard_id: str
    hash_key_range: HashKeyRange
    sequence_number_range: SequenceNumberRange
    parent_shard_id: str | None = None
    adjacent_parent_shard_id: str | None = None


class ChildShard(OperationOutput):
    """A shard that continues where another one ended."""

    shard_id: str
    parent_shards: list[str]
    hash_key_range: HashKeyRange


class KinesisRecordOut(msgspec.Struct, rename="pascal", omit_defaults=True, gc=False):
    """A record as returned to readers."""

    sequence_number: str
    approximate_arrival_timestamp: float
    data: bytes
    partition_key: str
    encryption_type: str | None = None


class Tag(OperationOutput):
    """A tag."""

    key: str
    value: str


class EnhancedMetrics(OperationOutput):
    """The metrics that are kept for each shard."""

    shard_level_metrics: list[str]


class WarmThroughput(OperationOutput):
    """The throughput that a stream accepts without scaling first."""

    target_mi_bps: int = field(name="TargetMiBps")
    current_mi_bps: int = field(name="CurrentMiBps")


class Consumer(OperationOutput):
    """A registered consumer."""

    consumer_name: str
    consumer_arn: str = field(name="ConsumerARN")
    consumer_status: str
    consumer_creation_timestamp: float
