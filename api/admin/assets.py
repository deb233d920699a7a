"""Static assets, read and compressed once, cached by browsers forever under their version."""

import gzip
import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

PREFIX = "/ui/static/"
"""URL prefix of the assets, which need no authentication."""

_KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "woff2": "font/woff2",
    "svg": "image/svg+xml",
}
_PACKED = frozenset({"css", "js", "svg"})
_FOREVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """A file as it is, and as gzip makes it where that is smaller."""

    kind: str
    body: bytes
    packed: bytes | None


class Assets(NamedTuple):
    """All files by path, and the version that any change of one makes another."""

    version: str
    by_path: dict[str, Asset]


@cache
def assets() -> Assets:
    """Return every file under `static` of the kinds that are served."""
    by_path = dict(_walk(files("api.admin") / "static", ""))
    digest = hashlib.sha256()
    for path, asset in sorted(by_path.items()):
        digest.update(path.encode() + b"\0" + asset.body)
    return Assets(digest.hexdigest()[:12], by_path)


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    assets_found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            assets_found += _walk(entry, f"{prefix}{entry.name}/")
        elif (suffix := entry.name.rpartition(".")[2]) in _KINDS:
            assets_found.append((prefix + entry.name, _asset(suffix, entry.read_bytes())))
    return assets_found


def _asset(suffix: str, body: bytes) -> Asset:
    packed = gzip.compress(body, 9, mtime=0) if suffix in _PACKED else None
    return Asset(_KINDS[suffix], body, packed)


def address_of(path: str) -> str:
    """Return the URL path of a file.

    Modules name one another by relative paths, so they share the version.
    """
    return f"{PREFIX}{assets().version}/{path}"


@router.get(PREFIX + "{version}/{path:path}")
async def show_asset(version: str, path: str, request: Request) -> Response:
    """Serve a file.

    Another version than the current one is served too: a page from before a restart may still name it.
    """
    asset = assets().by_path.get(path)
    if asset is None:
        return Response(status_code=404)
    current = version == assets().version
    headers = {
        "cache-control": _FOREVER if current else "no-store",
        "vary": "accept-encoding",
        "x-content-type-options": "nosniff",
    }
    if asset.packed is not None and accepts_gzip(request):
        headers["content-encoding"] = "gzip"
        return Response(asset.packed, headers=headers, media_type=asset.kind)
    return Response(asset.body, headers=headers, media_type=asset.kind)


def accepts_gzip(request: Request) -> bool:
    """Return whether the browser accepts gzip."""
    return "gzip" in request.headers.get("accept-encoding", "")
