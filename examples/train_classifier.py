"""One small network, trained on batches of Forebay and on batches that torchvision (or Pillow, as torchvision does it) made: the same accuracy."""

from collections.abc import Iterator
from pathlib import Path

import forebay
import numpy
from PIL import Image

CLASSES, TRAIN, TEST, EPOCHS, SEEDS = 4, 320, 400, 8, 10
MEAN, STD = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)
Batches = Iterator[tuple[numpy.ndarray, numpy.ndarray]]


def make(folder: Path, count: int, seed: int) -> None:
    """Noise with a blob: its color and its height are the class."""
    random = numpy.random.default_rng(seed)
    for number in range(count):
        label = number % CLASSES
        pixels = random.normal(110, 45, (40, 40, 3))
        top, left = (2 if label % 2 else 20) + random.integers(0, 6), random.integers(0, 24)
        pixels[top : top + 14, left : left + 14, label // 2] += 16
        path = folder / str(label) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(numpy.uint8)).save(path)


def ours(folder: Path, training: bool, seed: int) -> Batches:
    """Batches of an epoch after another; of a test, one epoch."""
    pipeline = forebay.Pipeline.files("**/*.png").decode()
    pipeline = pipeline.random_resized_crop(16, scale=(0.6, 1.0)).random_horizontal_flip() if training else pipeline.resize((16, 16))
    pipeline = pipeline.normalize(MEAN, STD).to_chw()
    for batch in forebay.Loader(pipeline, data=folder, batch_size=32, shuffle=training, seed=seed, epochs=EPOCHS if training else 1):
        yield batch["image"], batch["label"]


def theirs(folder: Path, training: bool, seed: int) -> Batches:
    """The same by torchvision where it is installed, else by Pillow, with the parameters drawn as torchvision draws them."""
    random = numpy.random.default_rng(seed)
    paths = sorted(folder.rglob("*.png"))
    prepare = _torchvision(training, seed) or (lambda image: _pillow(image, training, random))
    for _ in range(EPOCHS if training else 1):
        order = random.permutation(len(paths)) if training else numpy.arange(len(paths))
        for start in range(0, len(paths), 32):
            chosen = [paths[place] for place in order[start : start + 32]]
            images = numpy.stack([prepare(Image.open(path)) for path in chosen])
            yield images, numpy.array([int(path.parent.name) for path in chosen])


def reference() -> str:
    """What the other batches are made by here."""
    try:
        import torchvision
    except ImportError:
        return "Pillow, as torchvision does it"
    return f"torchvision {torchvision.__version__}"


def _torchvision(training: bool, seed: int):
    try:
        import torch
        from torchvision.transforms import v2
    except ImportError:
        return None
    torch.manual_seed(seed)
    first = [v2.RandomResizedCrop(16, scale=(0.6, 1.0)), v2.RandomHorizontalFlip()] if training else [v2.Resize((16, 16))]
    steps = v2.Compose([*first, v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    return lambda image: steps(image).numpy()


def _part(width: int, height: int, random: numpy.random.Generator) -> tuple[int, int, int, int]:
    """What torchvision's `RandomResizedCrop` draws: what does not fit is drawn again, ten times at the most."""
    for _ in range(10):
        area = width * height * random.uniform(0.6, 1.0)
        ratio = numpy.exp(random.uniform(numpy.log(3 / 4), numpy.log(4 / 3)))
        wide, high = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < wide <= width and 0 < high <= height:
            return int(random.integers(0, width - wide + 1)), int(random.integers(0, height - high + 1)), wide, high
    return 0, 0, width, height


def _pillow(image: Image.Image, training: bool, random: numpy.random.Generator) -> numpy.ndarray:
    box = (0.0, 0.0, float(image.width), float(image.height))
    if training:
        left, top, width, height = _part(image.width, image.height, random)
        box = (left, top, left + width, top + height)
    pixels = numpy.asarray(image.resize((16, 16), Image.Resampling.BILINEAR, box), numpy.float32) / 255
    if training and random.random() < 0.5:
        pixels = pixels[:, ::-1]
    return ((pixels - MEAN) / STD).transpose(2, 0, 1).astype(numpy.float32)


def accuracy(batches, seed: int) -> float:
    """Of a network of one hidden layer: trained by gradient descent with momentum, tested on what it has not seen."""
    random = numpy.random.default_rng(seed)
    weights = [random.normal(0, 0.04, (768, 32)), random.normal(0, 0.2, (32, CLASSES))]
    speeds = [numpy.zeros_like(weight) for weight in weights]
    for images, labels in batches(Path("train"), True, seed):
        inputs = images.reshape(len(images), -1).astype(numpy.float64)
        hidden = numpy.maximum(inputs @ weights[0], 0)
        scores = hidden @ weights[1]
        chances = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[numpy.arange(len(labels)), labels] -= 1
        error = chances / len(labels)
        gradients = [inputs.T @ ((error @ weights[1].T) * (hidden > 0)), hidden.T @ error]
        for weight, speed, gradient in zip(weights, speeds, gradients, strict=True):
            speed *= 0.9
            speed -= 0.02 * (gradient + 1e-3 * weight)
            weight += speed
    right = total = 0
    for images, labels in batches(Path("test"), False, seed):
        hidden = numpy.maximum(images.reshape(len(images), -1) @ weights[0], 0)
        right += int(((hidden @ weights[1]).argmax(axis=1) == labels).sum())
        total += len(labels)
    return right / total


make(Path("train"), TRAIN, seed=1)
make(Path("test"), TEST, seed=2)
# With what is not random, pixels agree to one level of 255.
mine, other = (numpy.concatenate([images for images, _ in batches(Path("test"), False, 0)]) for batches in (ours, theirs))
assert numpy.abs(mine - other).max() <= 1.01 / 255 / STD[0], numpy.abs(mine - other).max()

found = {name: [accuracy(batches, seed) for seed in range(SEEDS)] for name, batches in (("forebay", ours), ("reference", theirs))}
print(f"reference: {reference()}")
for name, accuracies in found.items():
    print(f"{name:>9}: {100 * numpy.mean(accuracies):.1f} % ± {100 * numpy.std(accuracies, ddof=1):.1f} over {SEEDS} seeds")
one, two = (numpy.array(found[name]) for name in ("forebay", "reference"))
noise = numpy.sqrt((one.var(ddof=1) + two.var(ddof=1)) / SEEDS + numpy.mean(one) * (1 - numpy.mean(one)) / TEST / SEEDS)
assert numpy.mean(one) > 0.7, "it learns"
assert abs(one.mean() - two.mean()) < 4 * noise, (one, two)
