"""What a stream's owner set at this door and the engine has no use for: the specification's annotations.

distribution         AUTO or USER_PARTITION_KEY                AUTO: records go to any shard
warm_throughput      MiB/s                                     kept
metrics              words with commas                         kept
key                  a KMS key                                 kept; nothing is encrypted
policy               JSON text                                 kept; not in effect
"""

from api.aws.protocol.metadata import Annotations

DISTRIBUTION = "distribution"
WARM_THROUGHPUT = "warm_throughput"
METRICS = "metrics"
KEY = "key"
POLICY = "policy"

_KEPT = Annotations("kinesis.")
annotation, annotated = _KEPT.read, _KEPT.write
