"""One id for each request, given by the client or made here, returned and logged."""

import re
import secrets
from itertools import count

from api.types import RequestHeaders

HEADER = b"x-request-id"

_process = secrets.token_hex(6).encode()
_numbers = count(secrets.randbelow(2**24))
_SAFE = re.compile(rb"[A-Za-z0-9_.:/+=-]{1,128}")


def request_id_of(headers: RequestHeaders) -> bytes:
    """Return the client's own id if it is safe to repeat, else a new one of this process.

    A new one is a random part, then a sequence number.
    """
    given = headers.get(HEADER)
    if given is not None and _SAFE.fullmatch(given):
        return given
    return b"%b%08x" % (_process, next(_numbers))
