"""PyTorch's DataLoader, two worker processes, with three ways to do the work; and torchvision's decoders alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from common import BATCH, WORKERS, Batch, Configuration, Pass, Peer, Work, bare_decoder, thread_pool_batches
from kernels import Kernel, kernel, stack


class Pictures:
    """A map-style data set: the image, and its number for a label."""

    def __init__(self, files: list[Path], transform: Kernel) -> None:
        self.files = files
        self.transform = transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return self.transform(self.files[number].read_bytes()), number


def open_loader(name: str, work: Work) -> Pass:
    from torch.utils.data import DataLoader

    pictures: Any = Pictures(work.files(), kernel(name, work.deterministic))
    loader = DataLoader(pictures, BATCH, shuffle=not work.deterministic, num_workers=WORKERS, persistent_workers=True)

    def one_pass() -> Iterator[Batch]:
        for images, numbers in loader:
            yield numbers, images

    return one_pass


def open_thread_pool(work: Work) -> Pass:
    transform = kernel("fast", work.deterministic)
    return thread_pool_batches(lambda path: transform(path.read_bytes()), work.files(), stack)


def torchvision_decoder() -> Callable[[bytes], Any]:
    import numpy
    import torch
    from torchvision.io import ImageReadMode, decode_image

    torch.set_num_threads(1)

    def decode(data: bytes) -> Any:
        encoded = torch.from_numpy(numpy.frombuffer(bytearray(data), numpy.uint8))
        # Channels last, as the others give it; the decoder makes it so and torchvision only turns the view round.
        return decode_image(encoded, ImageReadMode.RGB).permute(1, 2, 0)

    return decode


PEER = Peer(
    name="torch-dataloader",
    reported=("torch", "torchvision"),
    configurations=(
        Configuration("torch DataLoader + tvio", "full", partial(open_loader, "tvio")),
        Configuration("torch DataLoader + fast", "full", partial(open_loader, "fast")),
        Configuration("torch DataLoader + pil", "full", partial(open_loader, "pil")),
        Configuration("thread pool + fast", "full", open_thread_pool),
        bare_decoder("torchvision.io", "decode", torchvision_decoder),
        bare_decoder("torchvision.io", "png", torchvision_decoder),
    ),
)
