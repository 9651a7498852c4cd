"""L3 on a GPU: are the pixels right, and how fast do they come, beside nvJPEG and DALI? The one command for whoever has a GPU:

    python bench/gpu/run.py [--images FOLDER] [--batch 256] [--seconds 2]

Wants PyTorch with a GPU, and `pip install forebay[gpu]`; torchvision (nvJPEG, rocJPEG) and DALI are measured where they are installed. Everything that
cannot be run is named at the end, with the reason. FOLDER has images of any format (default: images of our own making). All are cut to one
size, so that each decoder gives one tensor. Exit code 1: pixels were wrong.
"""

from __future__ import annotations

import argparse
import io
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forebay.gpu
import numpy
from forebay.gpu import _devices
from forebay.gpu._batch import Wanted, decode_batch
from PIL import Image

SIZE = (375, 500)
ENCODINGS = ["l3-fast", "l3-fast-rows-32", "l3-fast-rows-16", "l3-dense", "l3-dense-rows-32", "l3-dense-rows-16"]
SKIPPED: list[str] = []


def pictures(folder: Path | None, count: int) -> list[numpy.ndarray[Any, Any]]:
    """So many images of one size."""
    if folder is None:
        random = numpy.random.default_rng(1)
        coarse = [random.integers(0, 256, (9, 12, 3), dtype=numpy.uint8) for _ in range(count)]
        images = [Image.fromarray(pixels).resize(SIZE[::-1], Image.Resampling.BICUBIC) for pixels in coarse]
        noise = random.integers(-3, 4, (*SIZE, 3))
        return [(numpy.asarray(image).astype(int) + noise).clip(0, 255).astype(numpy.uint8) for image in images]
    found = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp", ".bmp") and len(found) < count:
            image = Image.open(path).convert("RGB")
            scale = max(SIZE[1] / image.width, SIZE[0] / image.height)
            image = image.resize((max(SIZE[1], round(image.width * scale)), max(SIZE[0], round(image.height * scale))))
            found.append(numpy.asarray(image)[: SIZE[0], : SIZE[1]])
    if not found:
        sys.exit(f"error: there are no images in {folder}")
    return (found * (count // len(found) + 1))[:count]


def encoded(images: list[numpy.ndarray[Any, Any]], encoding: str, folder: Path) -> list[bytes]:
    """By the program; each image once."""
    source, target = folder / "png", folder / encoding
    if not source.exists():
        source.mkdir()
        for number, pixels in enumerate({pixels.tobytes(): pixels for pixels in images}.values()):
            Image.fromarray(pixels).save(source / f"{number:06}.png", compress_level=1)
    command = [sys.executable, "-m", "forebay._command", "convert", str(source), str(target), "--to", encoding]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    files = [path.read_bytes() for path in sorted(target.iterdir())]
    return (files * (len(images) // len(files) + 1))[: len(images)]


def rate(work: Callable[[], Any], images: int, seconds: float, torch: Any) -> float:
    """Images per second: the median of five runs, after one that compiles."""
    work()
    torch.cuda.synchronize()
    rates = []
    for _ in range(5):
        done, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds / 5:
            work()
            torch.cuda.synchronize()
            done += images
        rates.append(done / (time.perf_counter() - begun))
    return statistics.median(rates)


def verify(files: dict[str, list[bytes]]) -> bool:
    """Whether the GPU gives every pixel that the processor gives, and finds damage."""
    right = True
    for encoding, encoded_files in files.items():
        found = forebay.gpu.decode(encoded_files).cpu().numpy()
        same = all(numpy.array_equal(image, forebay.decode(file)) for image, file in zip(found, encoded_files, strict=True))
        print(f"pixels   {encoding:20} {'equal' if same else 'WRONG'}", flush=True)
        right &= same
        damaged = bytearray(encoded_files[0])
        damaged[len(damaged) // 2] ^= 1
        try:
            forebay.gpu.decode([encoded_files[0], bytes(damaged)])
            print(f"damage   {encoding:20} NOT FOUND")
            right = False
        except forebay.DataError:
            pass
    # Shapes that a batch of photos does not have.
    for height, width in ((1, 1), (5, 3), (33, 65), (64, 1000), (40, 4099)):
        pixels = numpy.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=numpy.uint8)
        with tempfile.TemporaryDirectory() as folder:
            for encoding in ("l3-fast-rows-16", "l3-dense-rows-16"):
                found = forebay.gpu.decode(encoded([pixels], encoding, Path(folder)))[0].cpu().numpy()
                same = numpy.array_equal(found, pixels)
                print(f"pixels   {encoding:20} {'equal' if same else 'WRONG'} at {height} × {width}", flush=True)
                right &= same
    return right


def jpegs(images: list[numpy.ndarray[Any, Any]]) -> list[bytes]:
    files = []
    for pixels in images:
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "jpeg", quality=90)
        files.append(file.getvalue())
    return files


def peers(files: list[bytes], seconds: float, torch: Any) -> dict[str, float]:
    """nvJPEG and DALI, on the same images as JPEG of quality 90 (lossy: another job, for comparison)."""
    rates: dict[str, float] = {}
    try:
        from torchvision.io import decode_jpeg

        tensors = [torch.frombuffer(bytearray(file), dtype=torch.uint8) for file in files]
        rates["JPEG, torchvision on the GPU (nvJPEG)"] = rate(lambda: decode_jpeg(tensors, device="cuda"), len(files), seconds, torch)
    except Exception as error:
        SKIPPED.append(f"nvJPEG by torchvision: {error}")
    try:
        from nvidia.dali import fn, pipeline_def

        arrays = [numpy.frombuffer(file, numpy.uint8) for file in files]

        @pipeline_def(batch_size=len(files), num_threads=4, device_id=0)
        def decoding() -> Any:
            return fn.decoders.image(fn.external_source(lambda: arrays, batch=True), device="mixed")

        pipe = decoding()
        pipe.build()
        rates["JPEG, DALI (mixed)"] = rate(pipe.run, len(files), seconds, torch)
    except Exception as error:
        SKIPPED.append(f"DALI: {error}")
    return rates


def on_processor(files: list[bytes], seconds: float) -> float:
    done, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for file in files:
            forebay.decode(file)
        done += len(files)
    return done / (time.perf_counter() - begun)


def measure(images: list[numpy.ndarray[Any, Any]], files: dict[str, list[bytes]], seconds: float, torch: Any) -> None:
    raw = sum(pixels.nbytes for pixels in images)
    pixels_per_image = SIZE[0] * SIZE[1]
    print(f"\n{'':40} {'images/s':>12} {'GB/s of pixels':>15} {'of the pixels':>14}")

    def line(name: str, found: float, size: int) -> None:
        print(f"{name:40} {found:12,.0f} {found * pixels_per_image * 3 / 1e9:15.2f} {size / raw:14.3f}", flush=True)

    for encoding, encoded_files in files.items():
        size = sum(map(len, encoded_files))
        line(f"{encoding}, one core", on_processor(encoded_files[:32], seconds / 4), size)
        line(f"{encoding}, GPU, from bytes to tensor", rate(lambda e=encoded_files: forebay.gpu.decode(e), len(images), seconds, torch), size)
        busy = device_seconds(encoded_files, torch)
        line(f"{encoding}, GPU, on the device alone", len(images) / busy, size)
    lossy = jpegs(images)
    for name, found in peers(lossy, seconds, torch).items():
        line(name, found, sum(map(len, lossy)))


def device_seconds(files: list[bytes], torch: Any) -> float:
    """How long the kernels of a batch take, copies left out, by PyTorch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    device = _devices["cuda"]
    with device.working():
        decode_batch(device, files, Wanted())
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as found:
            for _ in range(5):
                decode_batch(device, files, Wanted())
            torch.cuda.synchronize()
    kernels = [event for event in found.key_averages() if "Memcpy" not in event.key and "Memset" not in event.key]
    total = sum(getattr(event, "self_device_time_total", 0) or getattr(event, "self_cuda_time_total", 0) for event in kernels)
    return max(total / 5 / 1e6, 1e-9)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, help="a folder of images")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measurement")
    arguments = parser.parse_args()
    compiling = subprocess.run([sys.executable, str(Path(__file__).with_name("compile.py"))], capture_output=True, text=True, check=False)
    print(compiling.stdout if compiling.returncode == 0 else f"compiling ahead of time failed:\n{compiling.stderr}")
    try:
        import torch
        import triton
    except ImportError as error:
        print(f"skipped: everything else: {error}\nhint: install PyTorch for your GPU, and forebay[gpu]")
        return 0
    if not torch.cuda.is_available():
        print("skipped: everything else: PyTorch finds no GPU")
        return 0
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, Triton {triton.__version__}, Forebay {forebay.__version__}, {platform.processor()}")
    images = pictures(arguments.images, arguments.batch)
    with tempfile.TemporaryDirectory() as folder:
        files = {encoding: encoded(images, encoding, Path(folder)) for encoding in ENCODINGS}
    right = verify(files)
    measure(images, files, arguments.seconds, torch)
    for skipped in SKIPPED:
        print(f"skipped: {skipped}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
