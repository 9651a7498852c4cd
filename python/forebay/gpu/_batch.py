"""A batch of L3 images on a device: what goes there, which kernels run, and what they say of each strip."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy

from .. import _native
from .._errors import DataError, UnsupportedError
from .._frameworks import as_numpy

__all__ = ["Decoded", "Device", "Wanted", "decode_batch"]

#: The numbers of a strip that kernels see, and which of them are set here (`_kernels.py` has them all).
STRIP_NUMBERS = 20
FILE, MODE, WIDTH, FIRST_ROW, ROWS, CHANNELS, SAMPLE_BYTES = range(7)
SAMPLES, BLOCKS, OUTPUT, TOP = 12, 13, 14, 15

FAST = 1
#: A row is kept in registers: four phases of so many samples, a power of two.
BLOCK_MIN, BLOCK_MAX = 64, 4096
WIDTH_MAX = 4 * BLOCK_MAX
#: Blocks that a program unpacks at once, and pixels that one finishes; headers that one adds up.
UNPACKED_BLOCKS, FINISHED_PIXELS, HEADERS = 16, 512, 256
#: The most programs that share a strip.
SHARES_MAX = 64

#: What kernels say of a strip, by bits.
PROBLEMS = (
    "a block has codes of groups that it does not have",
    "the value stream is not used up",
    "the word stream is not used up",
    "the escape stream is not used up",
    "a final state is wrong",
)

#: Top, left, height and width, as torchvision's `crop` takes them.
Region = tuple[int, int, int, int]


class Device(Protocol):
    """Where kernels run. PyTorch's is `_torch_device.py`; tests have one for Triton's interpreter."""

    def upload(self, array: numpy.ndarray[Any, Any]) -> Any:
        """The same elements there."""

    def as_words(self, data: Any) -> Any:
        """Bytes as `int16`."""

    def empty(self, count: int, dtype: str) -> Any:
        """So many elements, whatever they are."""

    def zeros(self, count: int, dtype: str) -> Any:
        """So many elements, all 0."""

    def download(self, tensor: Any) -> numpy.ndarray[Any, Any]:
        """The same elements here. Waits for the kernels."""

    def view(self, tensor: Any, start: int, shape: tuple[int, ...]) -> Any:
        """A part of a flat tensor as what the user gets."""

    def run(self, kernel: str, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        """Starts a kernel of `_kernels.py`."""


@dataclass(frozen=True)
class Wanted:
    """What is made of images."""

    #: Height and width of what is cut out of the middle.
    center_crop: tuple[int, int] | None = None
    #: Or what is cut out of each image.
    regions: Sequence[Region] | None = None
    #: Factor and offset of each channel, where samples become floating point.
    affine: tuple[Sequence[float], Sequence[float]] | None = None
    #: The element type; `None` is the images' own.
    dtype: str | None = None
    channels_first: bool = False
    #: What images must have, where that is known.
    channels: int | None = None
    bits: int | None = None


@dataclass
class Decoded:
    """What came of a batch: the images that are right, in order, and what is wrong with the others."""

    #: One tensor where images are alike, otherwise a list; without those of `failed`.
    images: Any
    #: Which images these are.
    numbers: list[int]
    failed: dict[int, Exception]


def decode_batch(device: Device, images: Sequence[bytes], wanted: Wanted) -> Decoded:
    """Decode images there."""
    regions, failed = _regions(images, wanted)
    found = _native.l3_strips(list(images), regions)
    shapes: dict[int, tuple[int, ...]] = {}
    for number, header in enumerate(found["images"]):
        problem = header if isinstance(header, Exception) else failed.get(number) or _unfit(header, wanted)
        if problem is not None:
            failed[number] = problem
        else:
            shapes[number] = header
    strips = as_numpy(found["strips"])
    # A strip of an image that was refused is not decoded; neither is one that a crop does not touch, which is not there.
    strips = strips[numpy.isin(strips[:, FILE], numpy.fromiter(shapes, numpy.int64, len(shapes)))]
    if not shapes:
        return Decoded([], [], failed)
    placed, outputs = _places(shapes, regions, wanted)
    statuses, strips, tensors = _run(device, found, strips, placed, outputs, wanted)
    for index in numpy.flatnonzero(statuses):
        _note_damage(failed, strips[index], int(statuses[index]))
    numbers = [number for number in sorted(placed) if number not in failed]
    return Decoded(_collect(device, tensors, placed, numbers), numbers, failed)


@dataclass(frozen=True)
class _Place:
    """Where an image goes: the key of its output, its offset there, and its shape."""

    output: int
    start: int
    region: Region
    shape: tuple[int, ...]


def _regions(images: Sequence[bytes], wanted: Wanted) -> tuple[list[Region] | None, dict[int, Exception]]:
    """The part of each image that is wanted, and the images that do not have it."""
    failed: dict[int, Exception] = {}
    if wanted.center_crop is None and wanted.regions is None:
        return None, failed
    regions: list[Region] = []
    for number, image in enumerate(images):
        # Whether it is an L3 at all is found out later.
        width, height = struct.unpack_from("<II", image, 12) if len(image) >= 20 else (0, 0)
        if wanted.regions is not None:
            region = wanted.regions[number]
        else:
            # Odd margins round as torchvision's do, and those of the step `center_crop`.
            rows, columns = wanted.center_crop or (height, width)
            region = (round((height - rows) / 2), round((width - columns) / 2), rows, columns)
        top, left, rows, columns = region
        if min(top, left) < 0 or min(rows, columns) < 1 or top + rows > height or left + columns > width:
            size, part = f"{height} × {width} (height × width)", f"{rows} × {columns} at row {top}, column {left}"
            failed[number] = DataError(f"the image is {size}, and does not have {part}")
            region = (0, 0, 1, 1)
        regions.append(region)
    return regions, failed


def _unfit(header: tuple[int, int, int, int], wanted: Wanted) -> Exception | None:
    _, width, channels, bits = header
    if width > WIDTH_MAX:
        return UnsupportedError(f"the image is {width} pixels wide, over the {WIDTH_MAX} that a GPU decodes\nhint: decode it on the CPU")
    if wanted.channels not in (None, channels) or wanted.bits not in (None, bits):
        return UnsupportedError(
            f"the image has {channels} channels of {bits} bits, but {wanted.channels or channels} of {wanted.bits or bits} are wanted, and a GPU converts "
            "neither\nhint: decode on the CPU, or encode images alike"
        )
    if wanted.affine is not None and len(wanted.affine[0]) not in (1, channels):
        return UnsupportedError(f"the image has {channels} channels, but there are means for {len(wanted.affine[0])}")
    return None


def _places(shapes: dict[int, tuple[int, ...]], regions: list[Region] | None, wanted: Wanted) -> tuple[dict[int, _Place], dict[int, int]]:
    """Where each image goes, and how many elements each output has: one for 8 bits and one for 16, or one for both where all become numbers of
    another type."""
    placed: dict[int, _Place] = {}
    outputs: dict[int, int] = {}
    for number, (height, width, channels, bits) in shapes.items():
        region = (0, 0, height, width) if regions is None else regions[number]
        output = 0 if wanted.dtype else bits // 8
        start = outputs.get(output, 0)
        _, _, rows, columns = region
        shape = (channels, rows, columns) if wanted.channels_first else (rows, columns, channels)
        placed[number] = _Place(output, start, region, shape)
        outputs[output] = start + rows * columns * channels
    return placed, outputs


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


def warps(block: int) -> int:
    """How many warps keep a row of so many samples of each phase."""
    return min(8, max(1, block // 128))


def _run(
    device: Device,
    found: dict[str, Any],
    strips: numpy.ndarray[Any, Any],
    placed: dict[int, _Place],
    outputs: dict[int, int],
    wanted: Wanted,
) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any], dict[int, Any]]:
    """The status of each strip, the strips in that order, and the outputs."""
    # Strips that the same kernels decode, side by side.
    blocks = numpy.array([max(BLOCK_MIN, _power_of_two((int(width) + 3) // 4)) for width in strips[:, WIDTH]])
    kinds = numpy.stack([strips[:, MODE], strips[:, SAMPLE_BYTES], strips[:, CHANNELS], blocks], axis=1)
    order = numpy.lexsort(kinds.T)
    kinds = kinds[order]
    numbers = numpy.zeros((len(order), STRIP_NUMBERS), numpy.int64)
    numbers[:, : strips.shape[1]] = strips[order]
    sizes = numbers[:, ROWS] * numbers[:, WIDTH] * numbers[:, CHANNELS] * numbers[:, SAMPLE_BYTES]
    counts = numbers[:, ROWS] * ((numbers[:, WIDTH] + 63) // 64) * numbers[:, CHANNELS] * numbers[:, SAMPLE_BYTES]
    numbers[:, SAMPLES] = numpy.cumsum(sizes) - sizes
    numbers[:, BLOCKS] = numpy.cumsum(counts) - counts
    numbers[:, OUTPUT] = [placed[int(file)].start for file in numbers[:, FILE]]
    numbers[:, TOP : TOP + 4] = [placed[int(file)].region for file in numbers[:, FILE]]

    data = device.upload(as_numpy(found["data"]))
    tables = [device.upload(as_numpy(found[name]).reshape(-1)) for name in ("planes", "states", "contexts", "tables")]
    samples = device.empty(int(sizes.sum()), "uint8")
    offsets = device.empty(int(counts.sum()), "int32")
    status = device.zeros(4 * len(order), "int32")
    tensors = {key: device.empty(count, wanted.dtype or ("uint8" if key == 1 else "uint16")) for key, count in outputs.items()}
    factors = numpy.zeros(8, numpy.float32)
    if wanted.affine is not None:
        for begin, values in zip((0, 4), wanted.affine, strict=True):
            factors[begin : begin + 4] = values[0] if len(values) == 1 else [*values, 0, 0, 0][:4]
    affine = device.upload(factors)

    edges = numpy.flatnonzero(numpy.any(kinds[1:] != kinds[:-1], axis=1)) + 1
    for first, last in zip([0, *edges.tolist()], [*edges.tolist(), len(order)], strict=True):
        mode, sample_bytes, channels, block = (int(value) for value in kinds[first])
        count = last - first
        of_group = device.upload(numbers[first:last].reshape(-1))
        said = device.view(status, 4 * first, (4 * count,))
        row = {"BYTES": sample_bytes, "BLOCK": block, "num_warps": warps(block)}
        if mode == FAST:
            device.run("block_offsets", (count,), of_group, data, offsets, said, CHUNK=HEADERS)
            shares = min(SHARES_MAX, -(-int(counts[first:last].max()) // UNPACKED_BLOCKS))
            device.run("unpack", (count, shares), of_group, data, offsets, samples, BLOCK_COUNT=UNPACKED_BLOCKS)
            device.run("predict", (count, channels), of_group, samples, **row)
        else:
            device.run("entropy", (count, channels), of_group, data, device.as_words(data), *tables, samples, said, **row)
        shares = min(SHARES_MAX, -(-int((numbers[first:last, ROWS] * numbers[first:last, WIDTH]).max()) // FINISHED_PIXELS))
        output = tensors[0 if wanted.dtype else sample_bytes]
        device.run(
            "finish", (count, shares), of_group, samples, output, affine,
            PLANES=channels, BYTES=sample_bytes, AFFINE=wanted.affine is not None, CHANNELS_FIRST=wanted.channels_first,
            BLOCK=FINISHED_PIXELS,
        )
    statuses = numpy.bitwise_or.reduce(device.download(status).reshape(-1, 4), axis=1)
    return statuses, numbers, tensors


def _note_damage(failed: dict[int, Exception], strip: numpy.ndarray[Any, Any], status: int) -> None:
    problems = ", ".join(problem for bit, problem in enumerate(PROBLEMS) if status >> bit & 1)
    first, last = int(strip[FIRST_ROW]), int(strip[FIRST_ROW] + strip[ROWS] - 1)
    message = f"l3 data is damaged in the strip of rows {first} to {last}: {problems}"
    failed.setdefault(int(strip[FILE]), DataError(message))


def _collect(device: Device, tensors: dict[int, Any], placed: dict[int, _Place], numbers: list[int]) -> Any:
    """The images of these numbers."""
    shapes = {(place.output, place.shape) for place in placed.values()}
    if len(shapes) > 1:
        places = [placed[number] for number in numbers]
        return [device.view(tensors[place.output], place.start, place.shape) for place in places]
    ((output, shape),) = shapes
    images = device.view(tensors[output], 0, (len(placed), *shape))
    if len(numbers) == len(placed):
        return images
    return images[[index for index, number in enumerate(sorted(placed)) if number in set(numbers)]]
