"""The notices that the licenses of linked libraries ask for come with the wheel, and are of the versions that are linked."""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTICES = "THIRD-PARTY-NOTICES.txt"


@pytest.mark.parametrize(
    ("package", "library", "said"),
    [
        ("turbojpeg-sys", "libjpeg-turbo", "based in part on the work of the Independent JPEG Group"),
        ("libwebp-sys", "libwebp", "Copyright (c) 2010, Google Inc."),
        ("zstd-sys", "Zstandard", "Copyright (c) Meta Platforms, Inc. and affiliates"),
        ("libz-sys", "zlib", "Jean-loup Gailly and Mark Adler"),
        ("lz4-sys", "LZ4", "Yann Collet"),  # typos: on purpose
        ("libdeflate-sys", "libdeflate", "Eric Biggers"),
    ],
)
def test_libraries_that_are_linked_have_their_notices(package, library, said):
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    (version,) = (entry["version"] for entry in lock["package"] if entry["name"] == package)
    text = (ROOT / NOTICES).read_text(encoding="utf-8")
    assert f"\n{library}, as built by {package} {version}\n" in text, "run tools/third_party.py"
    assert said in text


def test_the_wheel_has_them():
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license-files"]
    assert any(fnmatch.fnmatch(NOTICES, pattern) for pattern in patterns)
