"""Hugging Face datasets: an Arrow table of encoded images, PyTorch's DataLoader with two worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from common import BATCH, WORKERS, Batch, Configuration, Pass, Peer, Work
from kernels import Kernel, kernel


def prepare(work: Work) -> None:
    import datasets

    files = work.files()
    columns = {"image": [path.read_bytes() for path in files], "number": list(range(len(files)))}
    datasets.Dataset.from_dict(columns).save_to_disk(str(work.prepared / "arrow"))


def transformed(transform: Kernel, rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {"image": [transform(data) for data in rows["image"]], "number": rows["number"]}


def open_loader(work: Work) -> Pass:
    import datasets
    from torch.utils.data import DataLoader

    pictures: Any = datasets.load_from_disk(str(work.prepared / "arrow"))
    pictures.set_transform(partial(transformed, kernel("fast", work.deterministic)))
    loader = DataLoader(pictures, BATCH, shuffle=not work.deterministic, num_workers=WORKERS, persistent_workers=True)

    def one_pass() -> Iterator[Batch]:
        for batch in loader:
            yield batch["number"], batch["image"]

    return one_pass


PEER = Peer(
    name="hf-datasets",
    packages=("datasets",),
    reported=("datasets",),
    configurations=(Configuration("HF datasets + fast", "full", open_loader, prepare),),
)
