"""What a Spark program may be told."""


class MillstreamError(Exception):
    """The service refused, or cannot be reached."""


class OptionError(MillstreamError):
    """An option of the source or sink is missing, or not what it can be."""


class DataLost(MillstreamError):
    """Records that should have been read are gone: retention took them. With failOnDataLoss=false they are skipped."""
