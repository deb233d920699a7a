from enum import StrEnum


class JobKind(StrEnum):
    ARCHIVE = "archive"
    BACKTEST = "backtest"
    COMPACT = "compact"
    REPLAY = "replay"

    def __str__(self) -> str:
        return str(self.value)
