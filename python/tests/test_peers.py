"""Others read what Forebay writes, and Forebay what they write: WebDataset and TensorFlow, where they can be imported."""

from __future__ import annotations

import gc
import json
import os
import warnings
from pathlib import Path
from typing import Any

import forebay
import numpy
import pytest
from conftest import SAMPLES, png, tar_pipeline


@pytest.fixture(scope="module")
def webdataset() -> Any:
    return pytest.importorskip("webdataset", reason="WebDataset is not installed")


@pytest.fixture(scope="module")
def tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    return pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def test_webdataset_reads_our_tars(webdataset: Any, tars: Path, tmp_path: Path) -> None:
    dataset = forebay.build(tar_pipeline(), tmp_path / "set", data=tars, strategy="resized+png", shards=2, progress=False)
    files = dataset.export_tar(tmp_path / "out", progress=False)
    with warnings.catch_warnings():
        # It leaves its files to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        samples = list(webdataset.WebDataset(files, shardshuffle=False).decode("rgb8"))
        gc.collect()
    assert [sample["__key__"] for sample in samples] == [f"folder/{number:04}" for number in range(SAMPLES)]
    for number, sample in enumerate(samples):
        assert (sample["png"] == number).all() and sample["png"].shape == (10, 12, 3)
        assert (sample["depth.npy"] == number).all() and sample["depth.npy"].dtype == numpy.float32
        assert sample["cls"] == number % 3 and sample["meta.json"] == {"number": number}


def test_webdatasets_tars_are_read(webdataset: Any, tmp_path: Path) -> None:
    pattern = str(tmp_path / "train-%d.tar")
    with webdataset.ShardWriter(pattern, maxcount=12, verbose=0) as writer:
        for number in range(SAMPLES):
            depth = numpy.full((2, 2), number, numpy.float32)
            sample = {"__key__": f"folder/{number:04}", "png": png(number), "cls": number % 3, "json": {"number": number}}
            writer.write({**sample, "depth.npy": depth})
    assert len(list(tmp_path.glob("*.tar"))) == 3
    numbers = []
    for batch in forebay.Loader(tar_pipeline(), data=tmp_path, batch_size=8):
        for place, key in enumerate(batch["key"]):
            number = int(key.removeprefix("folder/"))
            numbers.append(number)
            assert (batch["image"][place] == number).all() and (batch["depth"][place] == number).all()
            assert batch["label"][place] == number % 3 and batch["meta"][place] == {"number": number}
    assert numbers == list(range(SAMPLES))


def test_tensorflow_reads_our_shards(tensorflow: Any, tars: Path, tmp_path: Path) -> None:
    dataset = forebay.build(tar_pipeline(), tmp_path / "set", data=tars, strategy="resized", shards=4, progress=False)
    shards = [os.path.join(dataset.path, shard["file"]) for shard in dataset.manifest["shards"]]
    tensor = tensorflow.io.parse_tensor
    number = -1
    for number, record in enumerate(tensorflow.data.TFRecordDataset(shards).as_numpy_iterator()):
        features = tensorflow.train.Example.FromString(record).features.feature
        value = {name: feature.bytes_list.value for name, feature in features.items()}
        assert value["__key__"] == [f"folder/{number:04}".encode()]
        image = tensor(value["image"][0], tensorflow.uint8).numpy()
        assert image.shape == (10, 12, 3) and (image == number).all()
        assert (tensor(value["depth"][0], tensorflow.float32).numpy() == numpy.full((2, 2), number)).all()
        assert features["label"].int64_list.value == [number % 3] and json.loads(value["meta"][0]) == {"number": number}
    assert number == SAMPLES - 1


def test_tensorflow_reads_our_pictures(tensorflow: Any, tars: Path, tmp_path: Path) -> None:
    """As its users do: parsed in the graph, and decoded by it."""
    dataset = forebay.build(tar_pipeline(), tmp_path / "set", data=tars, strategy="resized+png", shards=1, progress=False)
    wanted = {
        "image": tensorflow.io.FixedLenFeature([], tensorflow.string),
        "label": tensorflow.io.FixedLenFeature([], tensorflow.int64),
    }

    def parse(record: Any) -> Any:
        found = tensorflow.io.parse_single_example(record, wanted)
        return tensorflow.io.decode_png(found["image"]), found["label"]

    shard = os.path.join(dataset.path, dataset.manifest["shards"][0]["file"])
    pairs = list(tensorflow.data.TFRecordDataset(shard).map(parse).as_numpy_iterator())
    assert [int(label) for _, label in pairs] == [number % 3 for number in range(SAMPLES)]
    assert all((image == number).all() for number, (image, _) in enumerate(pairs))


def test_tensorflows_shards_are_read(tensorflow: Any, tmp_path: Path) -> None:
    train = tensorflow.train
    for shard in range(2):
        with tensorflow.io.TFRecordWriter(str(tmp_path / f"train.tfrecord-{shard:05}-of-00002")) as writer:
            for number in range(shard * 15, shard * 15 + 15):
                grid = tensorflow.io.serialize_tensor(numpy.full((2, 3), number, numpy.int32)).numpy()
                features = {
                    "image/encoded": train.Feature(bytes_list=train.BytesList(value=[png(number)])),
                    "image/class/label": train.Feature(int64_list=train.Int64List(value=[number - 7])),
                    "scores": train.Feature(float_list=train.FloatList(value=[number, number / 2])),
                    "grid": train.Feature(bytes_list=train.BytesList(value=[grid])),
                }
                writer.write(train.Example(features=train.Features(feature=features)).SerializeToString())
    fields = {
        "image": "image/encoded",
        "label": ("image/class/label", "int"),
        "scores": ("scores", "float32[2]"),
        "grid": ("grid", "int32[2, 3]"),
    }
    numbers = []
    for batch in forebay.Loader(forebay.Pipeline.tfrecord(fields=fields).decode(), data=tmp_path, batch_size=8):
        for place in range(len(batch["key"])):
            number = int(batch["image"][place][0, 0, 0])
            numbers.append(number)
            assert batch["label"][place] == number - 7 and list(batch["scores"][place]) == [number, number / 2]
            assert (batch["grid"][place] == number).all()
    assert numbers == list(range(SAMPLES))
