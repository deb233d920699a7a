"""Request ids in the form Amazon gives them: a UUID."""

import secrets
from itertools import count

HEADER = b"x-amzn-requestid"

_numbers = count(secrets.randbelow(2**40))
_random = secrets.token_hex(10)
_process = f"{_random[:8]}-{_random[8:12]}-4{_random[12:15]}-8{_random[15:18]}-".encode()


def new_request_id() -> bytes:
    """Return a unique id: random for the process, then a sequence number."""
    return b"%b%012x" % (_process, next(_numbers) & 0xFFFFFFFFFFFF)
