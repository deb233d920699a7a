from enum import StrEnum


class JobStage(StrEnum):
    STARTING_SPARK = "starting_spark"

    def __str__(self) -> str:
        return str(self.value)
