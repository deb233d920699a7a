"""Errors of starting a private server."""


class EmbeddedServerError(Exception):
    """A private server cannot be started.

    The message is one line for the person at the terminal.
    """


class MissingBinary(EmbeddedServerError):
    """The server's program is not installed."""


class ServerNotReady(EmbeddedServerError):
    """The server was started and did not become ready."""
