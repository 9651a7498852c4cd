"""What a batch holds: the right pixels, in the loader's own memory."""

from __future__ import annotations

import gc
import os

import forebay
import numpy
import pytest
from forebay import _native
from PIL import Image


def decoded_by_pillow(path):
    return numpy.asarray(Image.open(path).convert("RGB"))


def test_png_pixels_are_pillows(tiny_files):
    loader = forebay.Loader(forebay.Pipeline.files("class3/*.png").decode(), data=tiny_files, batch_size=100)
    seen = 0
    for batch in loader:
        for key, image in zip(batch["key"], batch["image"], strict=True):
            assert numpy.array_equal(image, decoded_by_pillow(tiny_files / key))
            seen += 1
    assert seen == loader.samples == 1000


def test_jpeg_pixels_are_pillows(photos):
    """Both decode with libjpeg-turbo; versions may differ by a rounding."""
    for batch in forebay.Loader(forebay.Pipeline.files().decode(), data=photos, batch_size=7):
        for key, image in zip(batch["key"], batch["image"], strict=True):
            expected = decoded_by_pillow(photos / key)
            assert image.shape == expected.shape
            assert numpy.abs(image.astype(int) - expected).max() <= 3


def test_arrays_are_the_loaders_memory(tiny):
    loader = forebay.Loader(tiny, batch_size=32)
    for batch in loader:
        image, label = batch["image"], batch["label"]
        for array in (image, label):
            assert not array.flags.owndata
            assert array.flags.writeable and array.flags.c_contiguous and array.flags.aligned
        assert isinstance(owner(image), _native.Array)
        again = numpy.asarray(owner(image))
        assert numpy.shares_memory(image, again)
        assert image.ctypes.data == again.ctypes.data
        assert image.ctypes.data % 64 == 0
        # What is written is there for everybody: it is the same memory.
        image[0, 0, 0] = 1, 2, 3
        assert again[0, 0, 0].tolist() == [1, 2, 3]


def test_half_precision(tiny_files):
    images = forebay.Pipeline.files("class3/*.png").decode().resize((8, 8)).normalize(mean=[0.5] * 3, std=[0.25] * 3)
    [full] = forebay.Loader(images, data=tiny_files, batch_size=1000)
    [half] = forebay.Loader(images.to_dtype("float16"), data=tiny_files, batch_size=1000)
    assert half["image"].dtype == numpy.float16 and half["image"].nbytes * 2 == full["image"].nbytes
    assert numpy.array_equal(half["image"], full["image"].astype(numpy.float16))
    loader = forebay.Loader(images.to_dtype("bfloat16"), data=tiny_files, batch_size=1000)
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(forebay.UsageError, match="pip install ml_dtypes"):
            next(iter(loader))
        pytest.skip("ml_dtypes is not installed: no NumPy array of bfloat16")
    [brain] = loader
    assert numpy.array_equal(brain["image"], full["image"].astype(ml_dtypes.bfloat16))


def test_batches_are_mixed_in_half_precision(tiny_files):
    images = forebay.Pipeline.files("**/*.png").decode().resize((8, 8)).normalize(mean=[0.5] * 3, std=[0.25] * 3)
    batches = []
    for dtype in ("float32", "float16"):
        pipeline = images.to_dtype(dtype).to_chw().one_hot(10).to_dtype(dtype, fields=["label"], name="labels", stage="labels-converted")
        batches.append(next(iter(forebay.Loader(pipeline.mixup(0.4), data=tiny_files, batch_size=16, seed=5))))
    full, half = batches
    assert half["image"].dtype == half["label"].dtype == numpy.float16
    assert numpy.abs(half["image"] - full["image"]).max() < 0.01 and numpy.abs(half["label"] - full["label"]).max() < 0.01


def owner(array):
    while isinstance(array, numpy.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_a_buffer_is_used_again_only_when_it_is_free(tiny):
    addresses = [batch["image"].ctypes.data for batch in forebay.Loader(tiny, threads=1)]
    assert len(set(addresses)) <= 8
    # Whoever keeps batches keeps their pixels.
    kept = list(forebay.Loader(tiny, threads=2))
    assert len({batch["image"].ctypes.data for batch in kept}) == len(kept)
    for one, other in zip(kept, forebay.Loader(tiny, threads=2), strict=True):
        assert numpy.array_equal(one["image"], other["image"])


def test_arrays_outlive_their_loader(tiny):
    batch = next(iter(forebay.Loader(tiny)))
    image = batch["image"]
    expected = image.copy()
    del batch
    gc.collect()
    assert numpy.array_equal(image, expected)


def test_a_dlpack_consumer_takes_them(tiny):
    batch = next(iter(forebay.Loader(tiny)))
    for name in ("image", "label"):
        taken = numpy.from_dlpack(batch[name])
        assert numpy.shares_memory(taken, batch[name])
        assert numpy.array_equal(taken, batch[name])


def test_the_buffer_protocol_in_all_its_forms(tiny):
    image = owner(next(iter(forebay.Loader(tiny)))["image"])
    view = memoryview(image)
    assert (view.format, view.ndim, view.shape, view.itemsize) == ("B", 4, (64, 6, 6, 3), 1)
    assert view.strides == (108, 18, 3, 1)
    assert not view.readonly and view.c_contiguous
    assert bytes(image) == numpy.asarray(image).tobytes()
    assert len(image) == 64 and image.shape == [64, 6, 6, 3] and image.dtype == "uint8"
    assert repr(image) == "Array(uint8[64, 6, 6, 3])"


def test_float_batches(photos):
    pipeline = forebay.Pipeline.files().decode().resize(256).center_crop(224).normalize().to_chw()
    batch = next(iter(forebay.Loader(pipeline, data=photos, batch_size=8)))
    image = batch["image"]
    assert image.shape == (8, 3, 224, 224) and image.dtype == numpy.float32
    mean, deviation = numpy.array([0.485, 0.456, 0.406]), numpy.array([0.229, 0.224, 0.225])
    for key, found in zip(batch["key"], image, strict=True):
        picture = Image.open(photos / key)
        scale = 256 / min(picture.size)
        size = [256 if side == min(picture.size) else int(side * scale) for side in picture.size]
        resized = numpy.asarray(picture.resize(size, Image.Resampling.BILINEAR))
        top, left = (round((resized.shape[0] - 224) / 2), round((resized.shape[1] - 224) / 2))
        expected = (resized[top : top + 224, left : left + 224] / 255 - mean) / deviation
        assert numpy.abs(found.transpose(1, 2, 0) - expected).max() < 0.08


def test_bytes_without_a_decoder(photos):
    for batch in forebay.Loader(forebay.Pipeline.files(label=None), data=photos, batch_size=16):
        assert set(batch) == {"image", "key"}
        for key, content in zip(batch["key"], batch["image"], strict=True):
            assert content == (photos / key).read_bytes()


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from /proc")
def test_memory_stays_flat_over_fifty_epochs(tiny, capsys):
    loader = forebay.Loader(tiny, batch_size=256, shuffle=True, threads=2)
    sizes = []
    for _ in range(50):
        for batch in loader:
            assert len(batch["image"]) > 0
        gc.collect()
        sizes.append(resident_bytes())
    growth = max(sizes[-10:]) - max(sizes[5:15])
    with capsys.disabled():
        print(f"\nmemory over 50 epochs: {sizes[5] / 1e6:.1f} MB after 5, {sizes[-1] / 1e6:.1f} MB after 50")
    assert growth < 4_000_000, sizes


def test_frameworks_that_are_not_there(tiny):
    with pytest.raises(forebay.UsageError, match="one of numpy, torch, jax"):
        forebay.Loader(tiny, framework="tensorflow")
    try:
        import torch  # noqa: F401
    except ImportError:
        with pytest.raises(forebay.UsageError, match="`torch` cannot be imported"):
            forebay.Loader(tiny, framework="torch")


def test_jax_takes_them(tiny):
    jax = pytest.importorskip("jax")
    plain = next(iter(forebay.Loader(tiny)))
    batch = next(iter(forebay.Loader(tiny, framework="jax")))
    assert isinstance(batch["image"], jax.Array)
    assert batch["image"].unsafe_buffer_pointer() % 64 == 0
    taken = jax.numpy.from_dlpack(plain["image"])
    assert taken.unsafe_buffer_pointer() == plain["image"].ctypes.data
    assert numpy.array_equal(batch["image"], plain["image"]) and numpy.array_equal(batch["label"], plain["label"])
