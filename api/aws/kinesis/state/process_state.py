"""State of the endpoint between calls, in each process."""

from api.aws.kinesis.state.subscriptions import Subscriptions
from api.aws.kinesis.state.throttles import Pace


class Kept:
    """Rate limits of calls, and subscriptions. `limits`: the profile, `native` or `aws`."""

    def __init__(self, limits: str) -> None:
        self.pace = Pace(limits)
        self.subscriptions = Subscriptions()
