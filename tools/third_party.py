#!/usr/bin/env python3
"""Writes THIRD-PARTY-NOTICES.txt: the licenses of what the wheel links, as they ask for in a binary.

    tools/third_party.py

The texts are those in the packages' sources, which Cargo has unpacked: run `cargo fetch --locked` first. Of a package that may be had under the
MIT license this is taken, otherwise all of its license files. `python/tests/test_notices.py` notices a C library of another version.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "THIRD-PARTY-NOTICES.txt"
TARGET = "x86_64-unknown-linux-gnu"
RULE = "=" * 80

#: C and assembly that a package builds: its name, and the files that have its licenses.
LIBRARIES = {
    "turbojpeg-sys": ("libjpeg-turbo", ["libjpeg-turbo/LICENSE.md", "libjpeg-turbo/README.ijg"]),
    "libwebp-sys": ("libwebp", ["vendor/COPYING", "vendor/PATENTS"]),
    "zstd-sys": ("Zstandard", ["zstd/LICENSE"]),
    "libz-sys": ("zlib", ["src/zlib/LICENSE"]),
    "lz4-sys": ("LZ4", ["liblz4/lib/LICENSE"]),
    "libdeflate-sys": ("libdeflate", ["libdeflate/COPYING"]),
    "ring": ("BoringSSL and Fiat-Crypto", ["LICENSE-BoringSSL", "third_party/fiat/LICENSE"]),
}

HEAD = """\
Third-party notices

Forebay's wheel and its program are linked with the software below. Each part
remains under its own license. Forebay's own is in LICENSE-MIT and LICENSE-APACHE.

This software is based in part on the work of the Independent JPEG Group.

The Rust standard library is under MIT or Apache-2.0: https://www.rust-lang.org.
The sources of every Rust package, also of those under the Mozilla Public License
2.0, are at https://crates.io/crates/NAME/VERSION.

Written by tools/third_party.py.
"""


def cargo(*arguments: str) -> str:
    return subprocess.run(["cargo", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def linked() -> list[dict[str, Any]]:
    """The packages that the extension module is linked with, in the order of their names."""
    tree = cargo("tree", "--offline", "--locked", "-p", "forebay-python", "-e", "normal", "--target", TARGET, "--prefix", "none", "-f", "{p}")
    wanted = {tuple(line.split()[:2]) for line in tree.splitlines() if line and "(proc-macro)" not in line}
    packages = json.loads(cargo("metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", TARGET))["packages"]
    found = [package for package in packages if package["source"] and (package["name"], f"v{package['version']}") in wanted]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def tidied(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").expandtabs(4).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def license_files(package: dict[str, Any]) -> list[Path]:
    folder = Path(package["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.is_file() and re.match(r"(?i)(un)?licen[cs]e|copying|notice|copyright", path.name))
    if "MIT" in re.split(r"\W+", package["license"] or ""):
        # In addition to a choice, another license may always apply: `(MIT OR Apache-2.0) AND Unicode-3.0`.
        files = [path for path in files if re.search(r"(?i)mit|notice|unicode", path.name)] or files
    return files


def titled(package: dict[str, Any]) -> str:
    return f"{package['name']} {package['version']} ({package['license']})"


def notices() -> str:
    packages = linked()
    parts = [HEAD]
    for package in packages:
        library, files = LIBRARIES.get(package["name"], ("", []))
        if library:
            texts = [tidied(Path(package["manifest_path"]).parent / file) for file in files]
            parts.append("\n\n".join([f"{RULE}\n{library}, as built by {package['name']} {package['version']}\n{RULE}", *texts]) + "\n")
    texts: dict[str, list[str]] = {}
    without = []
    for package in packages:
        files = license_files(package)
        text = "\n\n".join(tidied(file) for file in files)
        if files:
            # Many have the same text, but for how its lines are broken.
            same = next((known for known in texts if known.split() == text.split()), text)
            texts.setdefault(same, []).append(titled(package))
        else:
            without.append(f"{titled(package)}, by {', '.join(package['authors']) or package['repository']}")
    for text, names in sorted(texts.items(), key=lambda entry: entry[1][0]):
        parts.append("\n".join([RULE, *names, RULE, "", text, ""]))
    lines = ["Packages that bring no license text: that of their license is at https://spdx.org/licenses.", *without]
    parts.append("\n".join([RULE, *lines, RULE, ""]))
    return "\n".join(parts)


def main() -> None:
    OUTPUT.write_text(notices(), encoding="utf-8")


if __name__ == "__main__":
    main()
