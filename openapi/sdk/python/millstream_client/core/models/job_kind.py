from enum import StrEnum


class JobKind(StrEnum):
    ARCHIVE = "archive"
    BACKTEST = "backtest"
    COMPACT = "compact"
    QUERY = "query"
    REPLAY = "replay"
    VIEW_BACKTEST = "view_backtest"
    VIEW_PLAN = "view_plan"
    VIEW_SCAN = "view_scan"
    VIEW_SEARCH = "view_search"

    def __str__(self) -> str:
        return str(self.value)
