"""The loaders that are compared: how each writes its data, and how it is read from the store. Run by `run.py`, one process for each measurement.

The work is the same for all: every sample of an epoch once, an image of pixels as it is stored and its number, as batches of 64 PyTorch tensors. Two worker
processes, or two threads. Nothing is decoded or augmented, so that what is measured is how data comes from the store.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import shutil
import tarfile
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any

SIDE = 224
SAMPLE_BYTES = SIDE * SIDE * 3
SHARDS = 12
BATCH = 64
WORKERS = 2
REGION = "us-east-1"
BUCKET = "bench"

#: The numbers of the samples of a batch, and the batch of images.
Batch = tuple[Any, Any]


def pictures(samples: int) -> Iterator[tuple[int, Any]]:
    """The samples: noise, which nobody can make smaller."""
    import numpy

    for number in range(samples):
        yield number, numpy.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), numpy.uint8)


def picture_of(content: bytes) -> Any:
    """The array of a NumPy file: a view of its bytes."""
    import numpy

    return numpy.frombuffer(content, numpy.uint8, offset=len(content) - SAMPLE_BYTES).reshape(SIDE, SIDE, 3)


def collate(samples: list[tuple[int, Any]]) -> Batch:
    import numpy
    import torch

    return torch.tensor([number for number, _ in samples]), torch.from_numpy(numpy.stack([picture for _, picture in samples]))


def write_tars(folder: pathlib.Path, samples: int) -> None:
    """As WebDataset has them; other readers of tars take the same."""
    import numpy

    made = pictures(samples)
    for shard in range(SHARDS):
        with tarfile.open(folder / f"shard-{shard:06}.tar", "w") as tar:
            for number, picture in (next(made) for _ in range(samples * shard // SHARDS, samples * (shard + 1) // SHARDS)):
                array = io.BytesIO()
                numpy.save(array, picture)
                for kind, content in (("npy", array.getvalue()), ("cls", str(number).encode())):
                    entry = tarfile.TarInfo(f"{number:06}.{kind}")
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))


def write_indexed(folder: pathlib.Path, samples: int) -> None:
    """The same tars, with the index of DALI's `wds2idx` beside each."""
    for path in sorted((folder.parent / "tars").glob("*.tar")):
        os.link(path, folder / path.name)
        lines: dict[str, list[str]] = {}
        with tarfile.open(path) as tar:
            for entry in tar:
                key, kind = entry.name.split(".")
                lines.setdefault(key, []).append(f"{kind} {entry.offset_data} {entry.size} {entry.name}")
        index = "".join(f"{' '.join(members)}\n" for members in lines.values())
        (folder / path.name).with_suffix(".idx").write_text(f"v1.2 {len(lines)}\n{index}", encoding="utf-8")


def write_forebay(folder: pathlib.Path, samples: int) -> None:
    import forebay

    forebay.build(forebay_pipeline(), folder, data=folder.parent / "tars", strategy="concatenated", shards=SHARDS, overwrite=True, progress=False)


def write_streaming(folder: pathlib.Path, samples: int) -> None:
    from streaming import MDSWriter

    with MDSWriter(out=str(folder), columns={"image": f"ndarray:uint8:{SIDE},{SIDE},3", "number": "int"}) as writer:
        for number, picture in pictures(samples):
            writer.write({"image": picture, "number": number})


def litdata_sample(number: int) -> dict[str, Any]:
    import numpy

    return {"image": numpy.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), numpy.uint8), "number": number}


def write_litdata(folder: pathlib.Path, samples: int) -> None:
    import litdata

    litdata.optimize(litdata_sample, list(range(samples)), str(folder), chunk_bytes="64MB", num_workers=1, mode="overwrite")


def forebay_pipeline() -> Any:
    import forebay

    return forebay.Pipeline.tar("*.tar", fields={"image": ("npy", f"uint8[{SIDE}, {SIDE}, 3]"), "number": ("cls", "int")})


class ForebayBatches:
    """Those of a loader; each time they are gone through is another epoch."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.loader:
            yield batch["number"], batch["image"]


def read_forebay(shuffle: bool, what: str = "forebay") -> Callable[..., Iterable[Batch]]:
    def read(endpoint: str, scratch: pathlib.Path) -> Iterable[Batch]:
        import forebay

        how: dict[str, Any] = {"batch_size": BATCH, "shuffle": shuffle, "seed": 7, "threads": WORKERS, "framework": "torch"}
        if what in ("tars", "indexed"):
            loader = forebay.Loader(forebay_pipeline(), data=f"s3://{BUCKET}/{what}", **how)
        else:
            loader = forebay.Loader(f"s3://{BUCKET}/{what}", **how)
        return ForebayBatches(loader)

    return read


def read_cached(endpoint: str, scratch: pathlib.Path) -> Iterable[Batch]:
    """The second epoch with a cache on the disk: the first one is not measured."""
    import forebay

    loader = forebay.Loader(f"s3://{BUCKET}/forebay", batch_size=BATCH, shuffle=True, seed=7, threads=WORKERS, framework="torch",
                            cache_dir=scratch / "cache", cache_size="10GB")
    for _ in loader:
        pass
    reset(endpoint)
    return ForebayBatches(loader)


def samples_of_tar(stream: Any) -> Iterator[tuple[int, Any]]:
    """The samples of a tar that is read from front to back."""
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        picture = None
        for entry in tar:
            content = tar.extractfile(entry).read()  # type: ignore[union-attr]
            if entry.name.endswith(".npy"):
                picture = picture_of(content)
            else:
                yield int(content), picture


def read_s3torchconnector(endpoint: str, scratch: pathlib.Path) -> Iterator[Batch]:
    import torch
    from s3torchconnector import S3ClientConfig, S3IterableDataset

    config = S3ClientConfig(force_path_style=True)
    tars = S3IterableDataset.from_prefix(
        f"s3://{BUCKET}/tars/", region=REGION, endpoint=endpoint, transform=samples_of_tar, s3client_config=config, enable_sharding=True
    )

    class Samples(torch.utils.data.IterableDataset):  # type: ignore[type-arg, misc]
        def __iter__(self) -> Iterator[tuple[int, Any]]:
            for tar in tars:
                yield from tar

    return iter(torch.utils.data.DataLoader(Samples(), BATCH, num_workers=WORKERS, collate_fn=collate))


def read_webdataset(endpoint: str, scratch: pathlib.Path) -> Iterator[Batch]:
    import webdataset

    urls = f"{endpoint}/{BUCKET}/tars/shard-{{000000..{SHARDS - 1:06}}}.tar"
    made: Any = webdataset.WebDataset(urls, shardshuffle=SHARDS, empty_check=False).shuffle(250)
    made = made.to_tuple("cls", "npy").map_tuple(int, picture_of).batched(BATCH, collation_fn=collate)
    return iter(webdataset.WebLoader(made, batch_size=None, num_workers=WORKERS))


def read_streaming(endpoint: str, scratch: pathlib.Path) -> Iterator[Batch]:
    import streaming
    import torch

    os.environ["S3_ENDPOINT_URL"] = endpoint
    streaming.base.util.clean_stale_shared_memory()

    class Samples(streaming.StreamingDataset):  # type: ignore[misc]
        def __getitem__(self, at: int) -> tuple[int, Any]:
            sample = super().__getitem__(at)
            return sample["number"], sample["image"]

    data = Samples(remote=f"s3://{BUCKET}/streaming", local=str(scratch / "mds"), batch_size=BATCH, shuffle=True)
    for stream in data.streams:
        # Its client has an open connection, which two workers that are forked of this process would both use: without encryption nothing
        # notices, and one of them waits for a minute.
        stream._downloader.clean_up()
    return iter(torch.utils.data.DataLoader(data, BATCH, num_workers=WORKERS, collate_fn=collate))


def litdata_pair(item: dict[str, Any]) -> tuple[int, Any]:
    return item["number"], item["image"]


def read_litdata(endpoint: str, scratch: pathlib.Path) -> Iterator[Batch]:
    import litdata

    # The client that it fetches chunks with refuses plain HTTP, and its options do not reach that one.
    litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
    options = {"endpoint_url": endpoint, "region_name": REGION}
    data = litdata.StreamingDataset(f"s3://{BUCKET}/litdata", shuffle=True, cache_dir=str(scratch / "litdata"), storage_options=options, transform=litdata_pair)
    return iter(litdata.StreamingDataLoader(data, batch_size=BATCH, num_workers=WORKERS, collate_fn=collate))


def read_bare(endpoint: str, scratch: pathlib.Path) -> Iterator[Batch]:
    """What the line gives whoever only takes bytes: eight connections, ranges of 8 MiB, and nothing made of them."""
    import concurrent.futures
    import http.client

    at, piece_bytes = urllib.parse.urlsplit(endpoint).netloc, 8 << 20

    def pieces(shard: int) -> list[tuple[str, int, int]]:
        connection, path = http.client.HTTPConnection(at), f"/{BUCKET}/tars/shard-{shard:06}.tar"
        connection.request("HEAD", path)
        size = int(connection.getresponse().headers["Content-Length"])
        return [(path, start, min(start + piece_bytes, size)) for start in range(0, size, piece_bytes)]

    def take(number: int) -> int:
        connection, buffer, taken = http.client.HTTPConnection(at), memoryview(bytearray(1 << 20)), 0
        for path, start, end in wanted[number::8]:
            connection.request("GET", path, headers={"Range": f"bytes={start}-{end - 1}"})
            answer = connection.getresponse()
            while got := answer.readinto(buffer):
                taken += got
        return taken

    with concurrent.futures.ThreadPoolExecutor(SHARDS) as pool:
        wanted = [piece for shard in pool.map(pieces, range(SHARDS)) for piece in shard]
        yield range(0), sum(pool.map(take, range(8)))


#: What is measured: the name of the row, the package, what is read, and how.
LOADERS: dict[str, tuple[str, str, str, Callable[[str, pathlib.Path], Iterable[Batch]]]] = {
    "bare": ("bytes alone, eight connections", "", "tars", read_bare),
    "forebay": ("Forebay, in order", "forebay", "forebay", read_forebay(shuffle=False)),
    "forebay-shuffled": ("Forebay, shuffled", "forebay", "forebay", read_forebay(shuffle=True)),
    "forebay-tars": ("Forebay, tars, shuffled", "forebay", "tars", read_forebay(shuffle=True, what="tars")),
    "forebay-indexed": ("Forebay, tars with an index, shuffled", "forebay", "indexed", read_forebay(shuffle=True, what="indexed")),
    "forebay-cached": ("Forebay, second epoch with a `cache_dir`", "forebay", "forebay", read_cached),
    "s3torchconnector": ("s3torchconnector, tars, in order", "s3torchconnector", "tars", read_s3torchconnector),
    "webdataset": ("WebDataset, tars, shuffled", "webdataset", "tars", read_webdataset),
    "streaming": ("MosaicML Streaming, shuffled", "mosaicml-streaming", "streaming", read_streaming),
    "litdata": ("LitData, shuffled", "litdata", "litdata", read_litdata),
}
WRITERS: dict[str, Callable[[pathlib.Path, int], None]] = {
    "tars": write_tars,
    "forebay": write_forebay,
    "indexed": write_indexed,
    "streaming": write_streaming,
    "litdata": write_litdata,
}


def reset(endpoint: str, faults: float = 0.0) -> None:
    """Has the store count from here on."""
    ask(f"{endpoint}/-/reset?faults={faults}")


def ask(url: str) -> bytes:
    import urllib.request

    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


def weights() -> Any:
    """An odd number for each eight bytes of an image."""
    import numpy

    return numpy.random.default_rng(19).integers(0, 1 << 63, SAMPLE_BYTES // 8, numpy.uint64) * 2 + 1


def sums_of(pixels: Any, by: Any) -> Any:
    """A checksum of each image: any byte that is wrong changes it, and so do bytes that changed places. Much faster than the line."""
    import numpy

    words = numpy.ascontiguousarray(pixels).reshape(len(pixels), SAMPLE_BYTES).view(numpy.uint64)
    return numpy.einsum("ij,j->i", words, by)


def check_samples(name: str, epoch: int, seen: list[int], samples: int) -> None:
    if sorted(seen) != list(range(samples)):
        raise SystemExit(f"{name} gave {len(seen)} samples, {len(set(seen))} of them different, of {samples}, in epoch {epoch}")


def measure(name: str, endpoint: str, scratch: pathlib.Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Some epochs: from before the loader is made to the last batch, every sample once in each, and each with the bytes that it was written with if that is
    asked for."""
    import numpy
    import torch  # noqa: F401 (what takes seconds to import is no part of an epoch)

    package, read = LOADERS[name][1], LOADERS[name][3]
    if package:
        __import__({"mosaicml-streaming": "streaming"}.get(package, package))
    by = weights()
    # Made anew, and not read from what was written.
    expected = numpy.array([sums_of(picture[None], by)[0] for _, picture in pictures(arguments.samples)]) if arguments.verify else None
    reset(endpoint, arguments.faults)
    begin = time.perf_counter()
    batches = read(endpoint, scratch)
    if name == "forebay-cached":
        begin = time.perf_counter()
    taken = first = first_bytes = 0
    for epoch in range(arguments.epochs):
        seen: list[int] = []
        for numbers, pixels in batches:
            seen += [int(number) for number in numbers]
            taken += pixels if isinstance(pixels, int) else pixels.nbytes
            if expected is not None:
                wrong = numpy.flatnonzero(sums_of(pixels, by) != expected[numpy.asarray(numbers)])
                if len(wrong):
                    raise SystemExit(f"{name} gave wrong bytes in epoch {epoch}, of samples {[int(numbers[row]) for row in wrong]}")
            if not first:
                first, first_bytes = time.perf_counter(), taken
        if name != "bare":
            check_samples(name, epoch, seen, arguments.samples)
    end = time.perf_counter()
    found = {"seconds": end - begin, "first_seconds": first - begin, "bytes": taken, "first_bytes": first_bytes}
    return {**found, "store": json.loads(ask(f"{endpoint}/-/stats")), "version": metadata.version(package) if package else ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["write", "read"])
    parser.add_argument("name")
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="the data's, or one for what a loader keeps")
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--endpoint", default="")
    parser.add_argument("--faults", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=1, help="of one loader; more than one only of Forebay")
    parser.add_argument("--verify", action="store_true", help="compare every sample with what was written")
    arguments = parser.parse_args()
    if arguments.mode == "write":
        shutil.rmtree(arguments.folder, ignore_errors=True)
        arguments.folder.mkdir(parents=True)
        WRITERS[arguments.name](arguments.folder, arguments.samples)
        found: dict[str, Any] = {"files": sum(1 for _ in arguments.folder.iterdir())}
    else:
        found = measure(arguments.name, arguments.endpoint, arguments.folder, arguments)
    print(f"\n{json.dumps(found)}", flush=True)
    # Some loaders leave threads and processes that never end; what is to be known is written.
    os._exit(0)


if __name__ == "__main__":
    main()
