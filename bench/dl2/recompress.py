"""What lower qualities cost and gain, as (DL)² lists its data sets: size, ratio, bits per pixel and PSNR for each quality.

    python bench/dl2/recompress.py FOLDER [--program target/release/forebay]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

#: The qualities that the paper has for ImageNet (its median quality is 96) and for Places365 (75).
HIGH = (85, 75, 50, 25, 10)
LOW = (50, 25, 10, 5, 1)


def recompressed(folder: Path, codec: str, qualities: tuple[int, ...], program: str) -> list[dict[str, Any]]:
    """A row for each quality, as `forebay recompress --json` gives it."""
    with tempfile.TemporaryDirectory() as work:
        command = [program, "recompress", str(folder), f"{work}/out", "--format", codec, "--metrics", "--json"]
        command += ["--quality", ",".join(map(str, qualities)), "--on-error", "skip"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return list(json.loads(done.stdout)["variants"])


def section(folder: Path, qualities: tuple[int, ...] = HIGH, program: str = "forebay") -> str:
    """The table of a folder as Markdown."""
    lines = [
        "| encoding | encoded | copied | size (MB) | ratio | bits/pixel | encode (ms) | PSNR (dB) | SSIM | MS-SSIM |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for codec in ("jpeg", "webp"):
        for row in recompressed(folder, codec, qualities, program):
            seconds = row["encode_seconds"]
            figures = [row["encoding"], row["encoded"], row["copied"], f"{row['bytes_out'] / 1e6:.2f}", f"{row['ratio']:.2f}"]
            figures += [f"{row['bits_per_pixel']:.2f}", _figure(None if seconds is None else seconds * 1e3, 1)]
            figures += [_figure(row["psnr"], 2), _figure(row["ssim"], 4), _figure(row["ms_ssim"], 4)]
            lines.append("| " + " | ".join(map(str, figures)) + " |")
    return "\n".join(lines) + "\n"


def _figure(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def main() -> None:
    """Print the table of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--program", default="forebay")
    parser.add_argument("--low", action="store_true", help="the qualities for images that have 75 already")
    arguments = parser.parse_args()
    print(section(arguments.folder, LOW if arguments.low else HIGH, arguments.program), end="")


if __name__ == "__main__":
    main()
