"""Start barrier: a process loads its modules while what it depends on is still starting."""

import os
import select
import sys

START_BARRIER = "MILLSTREAM_START_BARRIER"
"""Environment variable with the descriptor of a pipe, into which the parent writes to let us start."""


def wait_at_start_barrier() -> None:
    """Wait until the parent lets us start, if it controls that; exit if it gives up.

    What it wrote stays in the pipe, for the other processes and for those that are started later.
    """
    descriptor = os.environ.get(START_BARRIER)
    if descriptor is None:
        return
    poll = select.poll()
    poll.register(int(descriptor), select.POLLIN)
    [(_, events)] = poll.poll()
    if not events & select.POLLIN:
        sys.exit()
