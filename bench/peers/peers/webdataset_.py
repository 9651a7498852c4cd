"""WebDataset: tar shards, two worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from common import BATCH, WORKERS, Batch, Configuration, Pass, Peer, Work
from kernels import kernel

SHARDS = 4


def prepare(work: Work) -> None:
    import webdataset

    files = work.files()
    for shard in range(SHARDS):
        with webdataset.TarWriter(str(work.prepared / f"{shard}.tar")) as writer:
            for number in range(shard, len(files), SHARDS):
                writer.write({"__key__": f"{number:06}", "jpg": files[number].read_bytes(), "cls": number})


def open_loader(work: Work) -> Pass:
    import webdataset

    shards = [str(work.prepared / f"{shard}.tar") for shard in range(SHARDS)]
    pictures: Any = webdataset.WebDataset(shards, shardshuffle=SHARDS, empty_check=False)
    pictures = pictures.shuffle(250).to_tuple("jpg", "cls")
    pictures = pictures.map_tuple(kernel("fast", work.deterministic), int).batched(BATCH)
    loader = webdataset.WebLoader(pictures, batch_size=None, num_workers=WORKERS, persistent_workers=True)

    def one_pass() -> Iterator[Batch]:
        for images, numbers in loader:
            yield numbers, images

    return one_pass


PEER = Peer(
    name="webdataset",
    packages=("webdataset",),
    reported=("webdataset",),
    configurations=(Configuration("WebDataset + fast", "full", open_loader, prepare),),
)
