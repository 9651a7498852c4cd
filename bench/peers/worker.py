"""Runs one configuration of one peer, in the peer's environment, and writes what it found as JSON.

Two processors, whatever the machine has: peers differ in what they do beside their two workers.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any

import measure
from common import DEVIATION, MEAN, REFERENCES, SHORTER_SIDE, SIZE, WORKERS, Batch, Configuration, Work
from kernels import pil_deterministic

#: How long a peer may take to end.
EXIT_SECONDS = 15


def reference_file(data: Path, kind: str) -> Path:
    return data / f"reference-{kind}.npz"


def make_references(data: Path) -> None:
    """What Pillow and torchvision make of the first images."""
    import numpy
    from PIL import Image
    from torchvision.transforms import v2

    work = Work(data, data)
    jpegs, pngs = (work.files(kind)[: REFERENCES[task][1]] for kind, task in (("jpeg", "decode"), ("png", "png")))
    resize = v2.Resize((SIZE, SIZE), antialias=True)
    kinds = {
        "jpeg": [numpy.asarray(Image.open(path).convert("RGB")) for path in jpegs],
        "png": [numpy.asarray(Image.open(path).convert("RGB")) for path in pngs],
        "center": [pil_deterministic(path.read_bytes()).numpy() for path in jpegs],
        "whole": [_transformed(path, resize) for path in jpegs],
        "cut": [_transformed(path, _cut, resize) for path in jpegs],
    }
    for kind, pictures in kinds.items():
        numpy.savez(reference_file(data, kind), *pictures)


def _cut(picture: Any) -> Any:
    """The square that is as much of an image as the center crop is of the resized one; half pixels are left out."""
    height, width = picture.shape[-2:]
    side = min(height, width) * SIZE // SHORTER_SIDE
    top, left = (height - side) // 2, (width - side) // 2
    return picture[..., top : top + side, left : left + side]


def _transformed(path: Path, *steps: Any) -> Any:
    """An image after torchvision's steps, normalized."""
    import torch
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    whole = [*steps, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)]
    return v2.Compose(whole)(decode_image(str(path), ImageReadMode.RGB)).numpy()


def difference_percent(pictures: dict[int, Any], kind: str, count: int, data: Path) -> float:
    """The mean absolute difference to the reference, in percent of the range of values before normalizing."""
    import numpy

    missing = [number for number in range(count) if number not in pictures]
    if missing:
        raise ValueError(f"{len(missing)} of the first {count} images did not come, number {missing[0]} for one")
    scale = numpy.array(DEVIATION).reshape(3, 1, 1) if kind in ("center", "whole", "cut") else 1 / 255
    found = []
    with numpy.load(reference_file(data, kind)) as reference:
        for number in range(count):
            expected = reference[f"arr_{number}"]
            picture = pictures[number]
            if picture.shape != expected.shape:
                raise ValueError(f"image {number} has the shape {picture.shape}, but {expected.shape} is right")
            if picture.dtype != expected.dtype:
                raise ValueError(f"image {number} has the type {picture.dtype}, but {expected.dtype} is right")
            found.append(float((numpy.abs(picture.astype(float) - expected) * scale).mean()))
    return 100 * sum(found) / count


def check(configuration: Configuration, work: Work) -> dict[str, Any]:
    """Compares the deterministic variant's pixels."""
    import numpy

    kind, count = REFERENCES[configuration.task]
    kind = configuration.reference or kind
    pictures: dict[int, Any] = {}
    for numbers, images in configuration.open(work)():
        for number, image in zip(numbers, images, strict=True):
            if int(number) < count:
                pictures[int(number)] = numpy.array(image)
        if len(pictures) == count:
            break
    return {"difference_percent": difference_percent(pictures, kind, count, work.data)}


def speed(configuration: Configuration, work: Work, seconds: float) -> dict[str, Any]:
    """One pass to warm up, then whole passes for at least `seconds`."""
    if configuration.measure is not None:
        begin = measure.read()
        found = configuration.measure(work, seconds)
        return found | {"others_cores": measure.others_cores(begin, measure.read())}
    one_pass = configuration.open(work)
    for _ in one_pass():
        pass
    images = passes = 0
    begin = now = measure.read()
    while now.elapsed_seconds - begin.elapsed_seconds < seconds:
        images += sum(_length(batch) for batch in one_pass())
        passes += 1
        now = measure.read()
    return {
        "images": images,
        "passes": passes,
        "elapsed_seconds": now.elapsed_seconds - begin.elapsed_seconds,
        "cpu_seconds": now.own_seconds - begin.own_seconds,
        "others_cores": measure.others_cores(begin, now),
    }


def _length(batch: Batch) -> int:
    return len(batch[1])


def versions(packages: list[str]) -> dict[str, str]:
    return {package: metadata.version(package) for package in packages}


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    if arguments.mode == "references":
        make_references(arguments.data)
        return {}
    peer = importlib.import_module(f"peers.{arguments.peer}").PEER
    if arguments.mode == "versions":
        return {"versions": versions(peer.reported)}
    configuration = peer.configurations[arguments.configuration]
    work = Work(arguments.data, arguments.prepared, deterministic=arguments.mode == "check")
    if arguments.mode == "prepare":
        shutil.rmtree(work.prepared, ignore_errors=True)
        work.prepared.mkdir(parents=True)
        configuration.prepare(work)
        return {}
    if arguments.mode == "check":
        return check(configuration, work)
    return speed(configuration, work, arguments.seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["references", "versions", "prepare", "check", "speed"])
    parser.add_argument("--peer", default="")
    parser.add_argument("--configuration", type=int, default=0)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--prepared", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--result", type=Path, required=True)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:WORKERS])
    measure.adopt_orphans()
    try:
        found = run(arguments)
    except Exception as error:
        traceback.print_exc()
        what = "did not import" if isinstance(error, ImportError) else f"failed: {type(error).__name__}"
        found = {"error": f"{what}: {error}".splitlines()[0][:200]}
    arguments.result.write_text(json.dumps(found), encoding="utf-8")
    # Some peers' threads and processes do not end by themselves; what is to be known is written.
    signal.alarm(EXIT_SECONDS)


if __name__ == "__main__":
    main()
