"""Types shared by all protocols."""

from collections.abc import Mapping

RequestHeaders = Mapping[bytes, bytes]
"""Header values by lower-case name; a repeated header has its last value."""
