from enum import StrEnum


class AttemptOutcome(StrEnum):
    BLOCKED = "blocked"
    CLIENT_ERROR = "client_error"
    CONNECTION = "connection"
    CREDENTIALS = "credentials"
    DELIVERED = "delivered"
    GONE = "gone"
    REDIRECT = "redirect"
    SERVER_ERROR = "server_error"
    THROTTLED = "throttled"
    TIMEOUT = "timeout"
    TLS = "tls"

    def __str__(self) -> str:
        return str(self.value)
