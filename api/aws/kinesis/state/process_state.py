"""What the door remembers between calls, in each process."""

from api.aws.kinesis.state.subscriptions import Subscriptions
from api.aws.kinesis.state.throttles import Pace


class Kept:
    """The pace of calls, and who is subscribed. `limits`: the profile, `native` or `aws`."""

    def __init__(self, limits: str) -> None:
        self.pace = Pace(limits)
        self.subscriptions = Subscriptions()
