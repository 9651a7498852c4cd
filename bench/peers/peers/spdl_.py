"""SPDL: its pipeline of threads, with the shared functions and with its own FFmpeg decoder and filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common import BATCH, SIZE, WORKERS, Batch, Configuration, Pass, Peer, Work, bare_decoder
from kernels import center, kernel, normalize_chw, random_box, resized, stack


def ffmpeg_picture(path: str, deterministic: bool) -> Any:
    import random

    import spdl.io

    packets = spdl.io.demux_image(path)
    width, height = packets.width, packets.height
    if deterministic:
        new_width, new_height = resized(width, height)
        left, top = center(new_width, new_height)
        chain = f"scale={new_width}:{new_height}:flags=bilinear,crop={SIZE}:{SIZE}:{left}:{top}"
    else:
        left, top, box_width, box_height = random_box(width, height)
        chain = f"crop={box_width}:{box_height}:{left}:{top},scale={SIZE}:{SIZE}:flags=bilinear"
        chain += ",hflip" if random.random() < 0.5 else ""
    frames = spdl.io.decode_packets(packets, filter_desc=f"{chain},format=rgb24")
    return normalize_chw(spdl.io.to_numpy(spdl.io.convert_frames(frames)))


def open_pipeline(ffmpeg: bool, work: Work) -> Pass:
    from spdl.pipeline import PipelineBuilder

    items = [(number, str(path)) for number, path in enumerate(work.files())]
    transform = kernel("fast", work.deterministic)

    def load(item: tuple[int, str]) -> tuple[int, Any]:
        number, path = item
        if ffmpeg:
            return number, ffmpeg_picture(path, work.deterministic)
        return number, transform(Path(path).read_bytes())

    def gather(samples: list[tuple[int, Any]]) -> Batch:
        return [number for number, _ in samples], stack([picture for _, picture in samples])

    def one_pass() -> Iterator[Batch]:
        builder = PipelineBuilder().add_source(items).pipe(load, concurrency=WORKERS)
        pipeline = builder.aggregate(BATCH).pipe(gather).add_sink(2).build(num_threads=WORKERS)
        with pipeline.auto_stop():
            yield from pipeline

    return one_pass


def decoder() -> Callable[[bytes], Any]:
    import spdl.io

    def decode(data: bytes) -> Any:
        frames = spdl.io.decode_packets(spdl.io.demux_image(data), filter_desc="format=rgb24")
        return spdl.io.to_numpy(spdl.io.convert_frames(frames))

    return decode


PEER = Peer(
    name="spdl",
    packages=("spdl",),
    reported=("spdl",),
    hint="it needs FFmpeg's libraries on the system, for instance by: apt-get install ffmpeg",
    configurations=(
        Configuration("SPDL + fast", "full", partial(open_pipeline, False)),
        Configuration("SPDL, FFmpeg", "full", partial(open_pipeline, True)),
        bare_decoder("SPDL, FFmpeg", "decode", decoder),
        bare_decoder("SPDL, FFmpeg", "png", decoder),
    ),
)
