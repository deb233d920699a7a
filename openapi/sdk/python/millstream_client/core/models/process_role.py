from enum import StrEnum


class ProcessRole(StrEnum):
    API = "api"
    DELIVERER = "deliverer"
    SWEEPER = "sweeper"
    WORKER = "worker"

    def __str__(self) -> str:
        return str(self.value)
