"""Assets of the dashboard: vendored files match VENDOR.toml, templates obey the CSP."""

import gzip
import hashlib
import re
import tomllib
from pathlib import Path

from api.admin.assets import address_of, assets
from api.admin.rendering import CONTENT_SECURITY_POLICY

STATIC = Path("api/admin/static")
TEMPLATES = Path("api/admin/templates")


def test_vendored_files_match_the_manifest():
    asset = tomllib.loads((STATIC / "vendor/VENDOR.toml").read_text())["asset"]

    digests = {one["file"]: one["sha256"] for one in asset}

    there = {path.name for path in (STATIC / "vendor").iterdir()}
    licences = {one["licence_file"] for one in asset}
    assert there == digests.keys() | licences | {"VENDOR.toml"}
    for name, digest in digests.items():
        assert hashlib.sha256((STATIC / "vendor" / name).read_bytes()).hexdigest() == digest, name


def test_compressed_asset_decompresses_to_original():
    packed = [(one.packed, one.body) for one in assets().by_path.values() if one.packed]

    assert packed
    assert all(gzip.decompress(small) == body for small, body in packed)


def test_referenced_assets_exist():
    named = {
        name
        for template in TEMPLATES.rglob("*.html")
        for name in re.findall(r"asset\('([^']+)'\)", template.read_text())
    }
    imported = {
        f"js/{name}"
        for module in (STATIC / "js").glob("*.js")
        for name in re.findall(r'from "\./([^"]+)"', module.read_text())
    }

    assert named | imported <= assets().by_path.keys()
    assert address_of("app.css").startswith("/ui/static/")


def test_templates_obey_content_security_policy():
    """No inline handlers, styles or scripts, and nothing from other origins."""
    forbidden = re.compile(
        r"\son[a-z]+=|\sstyle=|hx-on|js:|<style|<script>|\|\s*safe|(src|href)=.https?:"
    )

    broken = [
        (template.name, line.strip())
        for template in TEMPLATES.rglob("*.html")
        for line in template.read_text().splitlines()
        if forbidden.search(line)
    ]

    assert broken == []
    assert "unsafe" not in CONTENT_SECURITY_POLICY
