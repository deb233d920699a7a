from enum import StrEnum


class EventTimes(StrEnum):
    ARRIVAL = "arrival"
    CLIENT_PREFER = "client_prefer"
    CLIENT_REQUIRE = "client_require"

    def __str__(self) -> str:
        return str(self.value)
