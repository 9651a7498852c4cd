"""What does quality buy? One training over JPEG qualities, a regimen and a codec of one's own: throughput, stalls and accuracy.

    python study.py             # 96 photos, 4 epochs
    python study.py 1000 20     # for accuracies that mean something
"""

import importlib.util
import sys
import zlib

import forebay
import numpy

samples, epochs = (int(argument) for argument in sys.argv[1:3] or (96, 4))
SIZE = 64
photos = forebay.demo_data("cv", "train", samples=samples, seed=1).data
unseen = forebay.demo_data("cv", "test", samples=max(48, samples // 4), seed=2).data


def steps(decoded):
    # Small gray parts at full resolution: only texture tells the classes apart, and texture is what lossy codecs spare.
    return decoded.random_crop(SIZE).grayscale().normalize(mean=[0.5], std=[0.25])


# The variants: the files as they are, and the same at three qualities, best first.
pipeline = steps(forebay.Pipeline.files("**/*.jpg", label="folder").decode())
variants = {"original": {"source": pipeline, "data": photos}}
for quality in (75, 50, 10):
    variants[f"jpeg-{quality}"] = forebay.build(pipeline, f"variants/jpeg-{quality}", data=photos, strategy=f"decoded+jpeg-{quality}")

# A codec that is learned from the photos: the 12 main components of their blocks of 8 x 8 pixels.
SIDE, KEPT = 8, 12


def blocks(image):
    height, width = (-size % SIDE for size in image.shape[:2])
    padded = numpy.pad(image, ((0, height), (0, width), (0, 0)), mode="edge")
    rows, columns = padded.shape[0] // SIDE, padded.shape[1] // SIDE
    return padded.reshape(rows, SIDE, columns, SIDE, 3).swapaxes(1, 2).reshape(rows * columns, -1), rows, columns


some = [forebay.decode(path.read_bytes()) for path in sorted(photos.rglob("*.jpg"))[:8]]
learned = numpy.concatenate([blocks(image)[0] for image in some]).astype(numpy.float32)
mean = learned.mean(axis=0)
basis = numpy.linalg.svd(learned[::7] - mean, full_matrices=False)[2][:KEPT]


def encode(image):
    values = (blocks(image)[0] - mean) @ basis.T
    return numpy.array(image.shape[:2], numpy.uint16).tobytes() + zlib.compress((values / 16).round().clip(-127, 127).astype(numpy.int8).tobytes())


def decode(content):
    height, width = (int(size) for size in numpy.frombuffer(content[:4], numpy.uint16))
    rows, columns = -(-height // SIDE), -(-width // SIDE)
    values = numpy.frombuffer(zlib.decompress(content[4:]), numpy.int8).reshape(-1, KEPT) * numpy.float32(16)
    pixels = (values @ basis + mean).clip(0, 255).astype(numpy.uint8).reshape(rows, columns, SIDE, SIDE, 3)
    return pixels.swapaxes(1, 2).reshape(rows * SIDE, columns * SIDE, 3)[:height, :width]


coded = forebay.apply_codec(photos, "variants/learned", encode=encode, decode=decode, parallel=True)
variants["learned"] = {"source": steps(coded.pipeline), "data": coded.folder}

# What is trained, and how good it is on photos that it has not seen, as they are.
test = forebay.Loader(pipeline, data=unseen, batch_size=64)
classes = len(test.classes)


def spectra(images):
    window = numpy.hanning(SIZE)[:, None] * numpy.hanning(SIZE)
    amplitudes = numpy.abs(numpy.fft.rfft2(images[..., 0] * window))
    return numpy.log1p(amplitudes).reshape(len(images), -1).astype(numpy.float32)


class Softmax:
    """A linear classifier of spectra in NumPy, for machines without PyTorch."""

    def __init__(self):
        self.weights = numpy.zeros((SIZE * (SIZE // 2 + 1), classes), numpy.float32)

    def step(self, inputs, labels):
        scores = inputs @ self.weights
        exponents = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        error = exponents / exponents.sum(axis=1, keepdims=True) - numpy.eye(classes, dtype=numpy.float32)[labels]
        self.weights -= 0.001 * inputs.T @ error / len(inputs)

    def predict(self, inputs):
        return (inputs @ self.weights).argmax(axis=1)


class TorchSoftmax:
    """The same in PyTorch, on the CPU."""

    def __init__(self):
        import torch

        self.torch = torch
        self.model = torch.nn.Linear(SIZE * (SIZE // 2 + 1), classes, bias=False)
        torch.nn.init.zeros_(self.model.weight)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)

    def step(self, inputs, labels):
        self.optimizer.zero_grad()
        scores = self.model(self.torch.from_numpy(inputs))
        self.torch.nn.functional.cross_entropy(scores, self.torch.from_numpy(labels)).backward()
        self.optimizer.step()

    def predict(self, inputs):
        with self.torch.no_grad():
            return self.model(self.torch.from_numpy(inputs)).argmax(dim=1).numpy()


make_model = TorchSoftmax if importlib.util.find_spec("torch") else Softmax


def train(run):
    model = make_model()
    for _, loader in run:
        for batch in loader:
            model.step(spectra(batch["image"]), batch["label"])
        test.set_epoch(0)  # the same parts of the photos every time
        right = [model.predict(spectra(batch["image"])) == batch["label"] for batch in test]
        run.report(accuracy=numpy.concatenate(right).mean())


def rising(loaders):
    """Half of the epochs at the lowest quality, then the files as they are."""
    return forebay.Regimen.simple({name: loaders[name] for name in ("jpeg-10", "original")}, epochs)


# Interrupted? Run it again: it continues after the last finished run.
study = forebay.study(train, variants, epochs=epochs, regimens={"10, original": rising}, batch_size=16, shuffle=True, output="study")
print(study)
print(coded)
print(forebay.budget(study.variants(), epochs=90, time="10min"))
study.report("study.html")
