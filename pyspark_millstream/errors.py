"""Errors raised to Spark programs."""


class MillstreamError(Exception):
    """The service rejected a call, or is unreachable."""


class OptionError(MillstreamError):
    """An option of the source or sink is missing or invalid."""


class DataLost(MillstreamError):
    """Records that should have been read no longer exist: retention deleted them.

    With failOnDataLoss=false they are skipped.
    """
