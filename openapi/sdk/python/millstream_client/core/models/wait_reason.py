from enum import StrEnum


class WaitReason(StrEnum):
    CAPACITY = "capacity"
    EXECUTORS = "executors"
    PACE = "pace"
    READERS = "readers"
    SPARK = "spark"
    TARGET = "target"
    WORKER = "worker"

    def __str__(self) -> str:
        return str(self.value)
