"""State of the endpoint between calls, in each process."""

from api.aws.kinesis.state.subscriptions import Subscriptions
from api.aws.kinesis.state.throttles import AwsShardLimits


class KinesisProcessState:
    """Rate limits of calls, and subscriptions. `limits`: the profile, `native` or `aws`."""

    def __init__(self, limits: str) -> None:
        self.shard_limits = AwsShardLimits(limits)
        self.subscriptions = Subscriptions()
