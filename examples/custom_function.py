"""A Python function as a step: NumPy in, NumPy out; random ones get a seed that follows from seed, epoch and sample."""

import forebay
import numpy

forebay.demo_data("cv", ".", samples=16)


def brightness(image: numpy.ndarray, seed: int) -> numpy.ndarray:
    factor = numpy.random.default_rng(seed).uniform(0.6, 1.4)
    return numpy.clip(image * factor, 0, 255).astype(numpy.uint8)


pipeline = (
    forebay.Pipeline.files("**/*.jpg")
    .decode()
    .resize(128)
    .center_crop(112)
    .map(brightness, random=True, parallel=True)  # thread-safe, so that calls may run at the same time
    .normalize()
    .to_chw()
)


def epoch() -> list[float]:
    loader = forebay.Loader(pipeline, data="photos/", batch_size=8, shuffle=True, seed=7)
    return [float(batch["image"].sum()) for batch in loader]


assert epoch() == epoch(), "the same images again, whatever the threads do"
print("reproducible")
