"""MosaicML Streaming: MDS shards, PyTorch's DataLoader with two worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from common import BATCH, WORKERS, Batch, Configuration, Pass, Peer, Work
from kernels import kernel


def prepare(work: Work) -> None:
    from streaming import MDSWriter

    with MDSWriter(out=str(work.prepared / "mds"), columns={"image": "bytes", "number": "int"}) as writer:
        for number, path in enumerate(work.files()):
            writer.write({"image": path.read_bytes(), "number": number})


def open_loader(work: Work) -> Pass:
    import streaming
    from torch.utils.data import DataLoader

    transform = kernel("fast", work.deterministic)

    class Pictures(streaming.StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, at: int) -> tuple[Any, int]:
            sample = super().__getitem__(at)
            return transform(sample["image"]), sample["number"]

    streaming.base.util.clean_stale_shared_memory()
    pictures = Pictures(local=str(work.prepared / "mds"), batch_size=BATCH, shuffle=not work.deterministic)
    loader = DataLoader(pictures, BATCH, num_workers=WORKERS, persistent_workers=True)

    def one_pass() -> Iterator[Batch]:
        for images, numbers in loader:
            yield numbers, images

    return one_pass


PEER = Peer(
    name="mosaicml-streaming",
    packages=("mosaicml-streaming",),
    reported=("mosaicml-streaming",),
    configurations=(Configuration("MosaicML Streaming + fast", "full", open_loader, prepare),),
)
