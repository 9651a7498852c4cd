"""tf.data: fused decode and crop, two threads; and TensorFlow's decoders alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from common import (
    AREA,
    BATCH,
    DEVIATION,
    MEAN,
    RATIO,
    SIZE,
    WORKERS,
    Batch,
    Configuration,
    Pass,
    Peer,
    Work,
    bare_decoder,
)
from kernels import center, resized


def start() -> Any:
    import tensorflow

    tensorflow.config.threading.set_inter_op_parallelism_threads(WORKERS)
    tensorflow.config.threading.set_intra_op_parallelism_threads(WORKERS)
    return tensorflow


def random_picture(tensorflow: Any, data: Any, antialias: bool) -> Any:
    shape = tensorflow.io.extract_jpeg_shape(data)
    begin, size, _ = tensorflow.image.sample_distorted_bounding_box(
        shape,
        tensorflow.zeros([1, 0, 4]),
        area_range=AREA,
        aspect_ratio_range=RATIO,
        max_attempts=10,
        min_object_covered=0,
        use_image_if_no_bounding_boxes=True,
    )
    window = tensorflow.stack([begin[0], begin[1], size[0], size[1]])
    picture = tensorflow.io.decode_and_crop_jpeg(data, window, channels=3)
    picture = tensorflow.image.resize(picture, (SIZE, SIZE), antialias=antialias)
    return tensorflow.image.random_flip_left_right(picture)


def center_picture(tensorflow: Any, data: Any, antialias: bool) -> Any:
    picture = tensorflow.io.decode_jpeg(data, channels=3)

    def upright_or_not(height: int, width: int) -> Any:
        new_width, new_height = resized(width, height)
        left, top = center(new_width, new_height)
        made = tensorflow.image.resize(picture, (new_height, new_width), antialias=antialias)
        return made[top : top + SIZE, left : left + SIZE]

    shape = tensorflow.shape(picture)
    return tensorflow.cond(shape[0] > shape[1], lambda: upright_or_not(500, 375), lambda: upright_or_not(375, 500))


def open_loader(antialias: bool, work: Work) -> Pass:
    tensorflow = start()
    files = [str(path) for path in work.files()]
    cut = center_picture if work.deterministic else random_picture

    def load(path: Any, number: Any) -> Any:
        picture = cut(tensorflow, tensorflow.io.read_file(path), antialias)
        picture = (picture - tensorflow.constant(MEAN) * 255) / (tensorflow.constant(DEVIATION) * 255)
        return number, tensorflow.transpose(tensorflow.ensure_shape(picture, (SIZE, SIZE, 3)), (2, 0, 1))

    pictures = tensorflow.data.Dataset.from_tensor_slices((files, list(range(len(files)))))
    if not work.deterministic:
        pictures = pictures.shuffle(len(files))
    pictures = pictures.map(load, num_parallel_calls=WORKERS).batch(BATCH).prefetch(2)
    options = tensorflow.data.Options()
    options.threading.private_threadpool_size = WORKERS
    options.threading.max_intra_op_parallelism = 1
    pictures = pictures.with_options(options)

    def one_pass() -> Iterator[Batch]:
        yield from pictures.as_numpy_iterator()

    return one_pass


def jpeg_decoder() -> Callable[[bytes], Any]:
    tensorflow = start()
    return lambda data: tensorflow.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE").numpy()


def png_decoder() -> Callable[[bytes], Any]:
    tensorflow = start()
    return lambda data: tensorflow.io.decode_png(data, channels=3).numpy()


PEER = Peer(
    name="tensorflow",
    packages=("tensorflow-cpu", "pillow"),
    reported=("tensorflow-cpu",),
    parent=None,
    configurations=(
        Configuration("tf.data decode_and_crop", "full", partial(open_loader, False)),
        Configuration("tf.data decode_and_crop, antialias", "full", partial(open_loader, True)),
        bare_decoder("TensorFlow", "decode", jpeg_decoder),
        bare_decoder("TensorFlow", "png", png_decoder),
    ),
)
