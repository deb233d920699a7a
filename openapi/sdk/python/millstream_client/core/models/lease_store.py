from enum import StrEnum


class LeaseStore(StrEnum):
    HOT_STORE = "hot_store"
    POSTGRES = "postgres"

    def __str__(self) -> str:
        return str(self.value)
