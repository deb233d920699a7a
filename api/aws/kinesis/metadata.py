"""Annotations of a stream's specification: settings that the engine does not use.

distribution         AUTO or USER_PARTITION_KEY                AUTO: records go to any shard
warm_throughput      MiB/s                                     stored
metrics              words with commas                         stored
key                  a KMS key                                 stored; nothing is encrypted
policy               JSON text                                 stored; not in effect
"""

from api.aws.protocol.metadata import Annotations

DISTRIBUTION = "distribution"
WARM_THROUGHPUT = "warm_throughput"
METRICS = "metrics"
KEY = "key"
POLICY = "policy"

_ANNOTATIONS = Annotations("kinesis.")
annotation, annotated = _ANNOTATIONS.read, _ANNOTATIONS.write
