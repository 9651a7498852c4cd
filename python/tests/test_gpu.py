"""L3 on a GPU, without one: the kernels under Triton's interpreter beside the pixels that were encoded, and compiled for real devices."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import forebay
import numpy
import pytest
import torch_stub
from forebay import _native
from PIL import Image

# Before Triton is imported: it decides then.
os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed: pip install triton, or run make test-gpu")

import forebay.gpu
from triton_numpy import NumpyDevice, quicken

quicken()

ROOT = Path(__file__).parents[2]
HEADER_BYTES, ENTRY_BYTES = 32, 8
#: Height, width: a phase that is empty, a last group of one, rows of one block and of several, several groups of a phase.
SIZES = [(1, 1), (3, 2), (2, 7), (6, 61), (3, 131), (2, 261)]
#: Rows as wide as in large photos and in panoramas, odd ones among them, up to the widest that registers hold; with the channels of each.
WIDE_SIZES = [((3, 515), 1), ((2, 1029), 3), ((2, 2051), 4), ((1, 16384), 1)]


def picture(height: int, width: int, channels: int, dtype: str = "uint8") -> numpy.ndarray:
    """Smooth here, noisy there, with edges: short and long residuals, and escaped ones."""
    random = numpy.random.default_rng(height * width + channels)
    largest = numpy.iinfo(dtype).max
    y, x, c = numpy.mgrid[:height, :width, :channels]
    smooth = (numpy.sin(y / 9 + c) + numpy.cos(x / 7)) * largest / 5 + largest / 2
    noise = random.integers(-largest // 2, largest // 2, smooth.shape) * (x > width * 0.8)
    return (smooth + noise + (x + y) // 11 % 2 * largest / 7).clip(0, largest).astype(dtype)


def png(pixels: numpy.ndarray) -> bytes:
    """Any depth and number of channels, which Pillow does not write."""
    height, width, channels = pixels.shape
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).reshape(height, -1)
    data = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize, (0, 4, 2, 6)[channels - 1], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def encoded(folder: Path, pictures: list[numpy.ndarray], *options: str) -> list[bytes]:
    """By the program."""
    source, target = folder / "png", folder / "-".join(options)
    source.mkdir(exist_ok=True)
    for number, pixels in enumerate(pictures):
        (source / f"{number:03}.png").write_bytes(png(pixels))
    assert _native.main(["forebay", "convert", str(source), str(target), *options]) == 0
    return [(target / f"{number:03}.l3").read_bytes() for number in range(len(pictures))]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> NumpyDevice:
    device = NumpyDevice()
    monkeypatch.setitem(forebay.gpu._devices, "cuda", device)
    return device


@pytest.mark.parametrize("mode", ["fast", "dense"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_pixels_are_those_that_were_encoded(device, tmp_path, mode, dtype):
    pictures = [picture(*size, number % 4 + 1, dtype) for number, size in enumerate(SIZES)]
    images = forebay.gpu.decode(encoded(tmp_path, pictures, "--mode", mode, "--strip-rows", "4"))
    assert isinstance(images, list)
    for image, expected in zip(images, pictures, strict=True):
        assert image.dtype == expected.dtype and numpy.array_equal(image, expected)
    assert ("predict" in device.kernels) == (mode == "fast") and ("entropy" in device.kernels) == (mode == "dense")


@pytest.mark.parametrize("mode", ["fast", "dense"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_wide_images_are_those_that_were_encoded(device, tmp_path, mode, dtype):
    pictures = [picture(*size, channels, dtype) for size, channels in WIDE_SIZES]
    images = forebay.gpu.decode(encoded(tmp_path, pictures, "--mode", mode))
    for image, expected in zip(images, pictures, strict=True):
        assert image.dtype == expected.dtype and numpy.array_equal(image, expected)


def test_wider_images_are_refused(device, tmp_path):
    (file,) = encoded(tmp_path, [picture(1, 16385, 1)], "--mode", "fast")
    with pytest.raises(forebay.UnsupportedError, match=r"16385 pixels wide, over the 16384 that a GPU decodes\nhint: decode it on the CPU"):
        forebay.gpu.decode([file])


def test_a_batch_is_one_tensor_of_both_modes_predictors_and_all_transforms(device, tmp_path):
    y, x, _ = numpy.mgrid[:4, :24, :3]
    noise = numpy.random.default_rng(1).integers(-4, 5, x.shape)
    photo = (128 + 60 * numpy.sin(x / 9) + 40 * numpy.cos(y / 5) + noise).astype(numpy.uint8)
    drawing = ((x + y) // 6 % 2 * 255 * numpy.array([1, 1, 0])).astype(numpy.uint8)
    fast, dense = (encoded(tmp_path, [photo, drawing], "--mode", mode) for mode in ("fast", "dense"))
    assert {file[10] for file in fast} == {file[10] for file in dense} == {1, 2}
    # Whatever transform and predictor a header of `fast` says, its residuals are pixels; those of `dense` are so by the transform.
    files = [*fast, *dense]
    for transform in range(5):
        files.append(changed(dense[0], transform, dense[0][10]))
        files += [changed(fast[0], transform, predictor) for predictor in (1, 2)]
    images = forebay.gpu.decode(files)
    assert images.shape == (19, 4, 24, 3) and numpy.array_equal(images, [forebay.decode(file) for file in files])
    assert numpy.array_equal(images[:4], [photo, drawing, photo, drawing])


def changed(file: bytes, transform: int, predictor: int) -> bytes:
    changed = bytearray(file)
    changed[9:11] = transform, predictor
    return bytes(resealed(changed))


def test_tensors_are_those_of_pytorch(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pictures = [picture(5, 30, 3), picture(5, 30, 3)]
    files = encoded(tmp_path, pictures, "--mode", "dense")
    images = forebay.gpu.decode(files, device="cpu")
    assert type(images).__module__ == "torch" and numpy.array_equal(images.numpy(), pictures)
    with pytest.raises(forebay.UsageError, match="`device` is `meta`"):
        forebay.gpu.decode(files, device="meta")


def test_crops_and_normalization_are_fused(device, tmp_path):
    pictures = [picture(24, 50, 3), picture(17, 47, 3)]
    files = encoded(tmp_path, pictures, "--strip-rows", "8")
    images = forebay.gpu.decode(files, crop=(7, 20))
    middle = [pictures[0][8:15, 15:35], pictures[1][5:12, 14:34]]
    assert numpy.array_equal(images, middle)
    regions = [(0, 3, 9, 9), (8, 38, 9, 9)]
    images = forebay.gpu.decode(files, crop=regions, layout="CHW")
    cut = numpy.stack([pictures[0][:9, 3:12], pictures[1][8:17, 38:47]])
    assert numpy.array_equal(images, cut.transpose(0, 3, 1, 2))
    mean, std = numpy.float32([0.485, 0.456, 0.406]), numpy.float32([0.229, 0.224, 0.225])
    images = forebay.gpu.decode(files, crop=regions, mean=mean, std=std)
    assert images.dtype == numpy.float32 and numpy.allclose(images, (cut / numpy.float32(255) - mean) / std, rtol=0, atol=2e-6)
    images = forebay.gpu.decode(files, crop=regions, dtype="float16")
    assert images.dtype == numpy.float16 and numpy.allclose(images, cut / 255, atol=1e-3)
    with pytest.raises(forebay.DataError, match=r"image 1: the image is 17 × 47 \(height × width\), and does not have 9 × 9 at row 9"):
        forebay.gpu.decode(files, crop=[(0, 0, 9, 9), (9, 0, 9, 9)])
    for wrong in ({"crop": [(0, 0, 1, 1)]}, {"mean": [0.5]}, {"layout": "NHWC"}, {"dtype": "uint8"}, {"mean": [0.5], "std": [0.0]}):
        with pytest.raises(forebay.UsageError):
            forebay.gpu.decode(files, **wrong)


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def resealed(file: bytearray) -> bytearray:
    """With checksums that are right again."""
    height, rows, model = (struct.unpack_from("<I", file, offset)[0] for offset in (16, 20, 24))
    strips = -(-height // rows)
    payload = HEADER_BYTES + ENTRY_BYTES * strips + model
    at = payload
    for strip in range(strips):
        entry = HEADER_BYTES + ENTRY_BYTES * strip
        (length,) = struct.unpack_from("<I", file, entry)
        struct.pack_into("<I", file, entry + 4, crc32c(bytes(file[at : at + length])))
        at += length
    struct.pack_into("<I", file, 28, crc32c(bytes(file[:28] + file[HEADER_BYTES:payload])))
    return file


@pytest.mark.parametrize("mode", ["fast", "dense"])
def test_damage_is_reported_by_image_and_reaches_no_other_memory(device, tmp_path, mode):
    pixels = picture(5, 40, 1)
    (good,) = encoded(tmp_path, [pixels], "--mode", mode, "--strip-rows", "3")
    damaged = bytearray(good)
    damaged[-70] ^= 4
    with pytest.raises(forebay.DataError, match=r"image 1: l3 data is damaged at byte `.*checksum of strip `1`") as raised:
        forebay.gpu.decode([good, bytes(damaged), good])
    assert raised.value.record == 1
    with pytest.raises(forebay.DataError, match=r"image 0.*2 of the images"):
        forebay.gpu.decode([b"", good, b"LLL"])
    with pytest.raises(forebay.UnsupportedError, match="png: decoding on a GPU is not supported"):
        forebay.gpu.decode([png(pixels)])
    # Checksums that are right, and streams that are not: each is found by the kernels, or is what the CPU makes of it.
    random = numpy.random.default_rng(3)
    payload = HEADER_BYTES + 2 * ENTRY_BYTES + struct.unpack_from("<I", good, 24)[0]
    files, expected = [], []
    for _ in range(16):
        file = bytearray(good)
        for _ in range(random.integers(1, 4)):
            place = int(random.integers(payload, len(file) - 64))
            file[place] = int(random.integers(256))
        files.append(bytes(resealed(file)))
        try:
            expected.append(forebay.decode(files[-1], color="stored"))
        except forebay.DataError:
            expected.append(None)
    assert any(image is None for image in expected)
    done = forebay.gpu.decode_on("cuda", [*files, good], forebay.gpu.Wanted())
    assert sorted(done.failed) == [number for number, image in enumerate(expected) if image is None]
    assert numpy.array_equal(done.images, [image for image in expected if image is not None] + [pixels])
    assert all("l3 data is damaged" in str(problem) for problem in done.failed.values())
    device.check()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, forebay.Pipeline]:
    root = tmp_path_factory.mktemp("gpu")
    (root / "files" / "a").mkdir(parents=True)
    for number in range(4):
        Image.fromarray(picture(8 + number, 13, 3)).save(root / "files" / "a" / f"{number}.png")
    pipeline = forebay.Pipeline.files("**/*.png").decode().center_crop((5, 9)).normalize().to_chw()
    forebay.build(pipeline, root / "built", data=root / "files", strategy="decoded+l3-dense-rows-4")
    return root / "built", pipeline


def test_a_loader_gives_what_the_cpu_gives(device, dataset, monkeypatch):
    torch_stub.install(monkeypatch, gpu=True)
    folder, _ = dataset
    plain = list(forebay.Loader(folder, batch_size=3, shuffle=True))
    loader = forebay.Loader(folder, batch_size=3, shuffle=True, framework="torch", decode="gpu")
    assert loader.decode == "gpu" and loader.device == "cuda"
    for batch, expected in zip(loader, plain, strict=True):
        assert batch["key"] == expected["key"] and batch["label"].tolist() == expected["label"].tolist()
        assert batch["image"].dtype == numpy.float32 and numpy.array_equal(batch["image"], expected["image"])
    assert device.kernels.count("entropy") == 2


def test_a_loader_leaves_out_what_is_damaged(device, dataset, tmp_path, monkeypatch):
    """Of files that are L3 already, whose first step is to decode them."""
    torch_stub.install(monkeypatch, gpu=True)
    pictures = [picture(6, 9, 3) for _ in range(4)]
    files = encoded(tmp_path, pictures, "--mode", "fast")
    (tmp_path / "l3").mkdir()
    for number, file in enumerate(files):
        damaged = bytearray(file)
        damaged[-66] ^= number == 2
        (tmp_path / "l3" / f"{number}.l3").write_bytes(damaged)
    pipeline = forebay.Pipeline.files("*.l3", label="none").decode()
    options = {"data": tmp_path / "l3", "framework": "torch", "decode": "gpu"}
    with pytest.raises(forebay.DataError, match=r"sample `2\.l3`: step `decode`: l3 data is damaged") as raised:
        list(forebay.Loader(pipeline, **options))
    assert raised.value.key == "2.l3"
    loader = forebay.Loader(pipeline, batch_size=3, on_error="skip", **options)
    batches = list(loader)
    assert [batch["key"] for batch in batches] == [["0.l3", "1.l3"], ["3.l3"]]
    assert all(numpy.array_equal(image, pictures[0]) for batch in batches for image in batch["image"])
    assert loader.skipped == 1 and loader.skipped_samples[0].key == "2.l3"


def test_what_a_gpu_does_not_do_is_refused(dataset, monkeypatch, tmp_path):
    torch_stub.install(monkeypatch, gpu=True)
    folder, pipeline = dataset
    with pytest.raises(forebay.UsageError, match='`decode` has no effect without `framework="torch"`'):
        forebay.Loader(folder, decode="gpu")
    with pytest.raises(forebay.UsageError, match='`device` has no effect without `decode="gpu"`'):
        forebay.Loader(folder, device="cuda:1")
    with pytest.raises(forebay.UsageError, match="`decode` is `tpu`"):
        forebay.Loader(folder, decode="tpu")
    random = forebay.Pipeline.files("**/*.png").decode().random_crop(8)
    forebay.build(random, tmp_path / "random", data=folder.parent / "files", strategy="decoded+l3-fast")
    with pytest.raises(forebay.UsageError, match="step `random_crop` cannot be done on a GPU\nhint: only images stored as L3"):
        forebay.Loader(tmp_path / "random", framework="torch", decode="gpu")
    forebay.build(pipeline, tmp_path / "png", data=folder.parent / "files", strategy="decoded+png")
    with pytest.raises(forebay.UsageError, match=r"decoding the images of strategy `decoded\+png` cannot be done on a GPU"):
        forebay.Loader(tmp_path / "png", framework="torch", decode="gpu")


def test_kernels_compile_for_real_devices():
    """Ahead of time, without a device: what the interpreter takes, a compiler may not."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(ROOT / "bench" / "gpu" / "compile.py"), "--quick"]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    for target in ("sm_80", "sm_90", "gfx942"):
        assert f"{target}: " in found.stdout
