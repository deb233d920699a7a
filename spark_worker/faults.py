"""Fault points for the worker and its tasks: importing this arms what MILLSTREAM_FAULT names.

See `storage.domain.faults`, which storage's own fault points use.
"""

from spark_worker.settings import armed_fault
from storage.domain.faults import arm, fault

__all__ = ["fault"]

arm(armed_fault())
