"""Fault points of the worker and its tasks; importing this arms the MILLSTREAM_FAULT one.

See `storage.domain.fault_points`, which storage's own fault points use.
"""

from spark_worker.settings import armed_fault
from storage.domain.fault_points import arm, fault

__all__ = ["fault"]

arm(armed_fault())
