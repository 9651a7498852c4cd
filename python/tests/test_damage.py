"""Damaged shards: refused by name, or skipped, counted and listed."""

import os
import shutil

import forebay
import pytest


@pytest.fixture
def dataset(photos, tmp_path):
    return forebay.build("cv", tmp_path / "dataset", data=photos, strategy="resized", shards=4, threads=2).path


def load(folder, **options):
    loader = forebay.Loader(folder, batch_size=4, **options)
    keys = [key for batch in loader for key in batch["key"]]
    return loader, keys


def test_a_missing_shard_is_one_loss_with_its_number_of_samples(dataset):
    _, whole = load(dataset)
    lost = forebay.Dataset(dataset).manifest["shards"][1]["samples"]
    os.remove(os.path.join(dataset, "shard-00001.tfrecord"))
    with pytest.raises(FileNotFoundError, match="shard-00001"):
        load(dataset)
    loader, keys = load(dataset, on_error="skip")
    assert set(keys) < set(whole) and len(keys) == len(whole) - lost
    assert loader.skipped == lost
    assert [(entry.key, entry.samples) for entry in loader.skipped_samples] == [("shard-00001.tfrecord", lost)]


def test_a_broken_index_costs_nothing_and_is_named(dataset):
    _, whole = load(dataset)
    with open(os.path.join(dataset, "shard-00002.tfrecord.idx"), "w") as index:
        index.write("0 16\n")
    with pytest.raises(forebay.DataError, match=r"shard-00002\.tfrecord\.idx"):
        load(dataset)
    loader, keys = load(dataset, on_error="skip")
    assert keys == whole and loader.skipped == 0
    assert [(entry.key, entry.samples) for entry in loader.skipped_samples] == [("shard-00002.tfrecord", 0)]


def test_skipping_everything_is_an_error(dataset):
    for name in os.listdir(dataset):
        if name.endswith(".tfrecord"):
            os.remove(os.path.join(dataset, name))
    with pytest.raises(forebay.DataError, match="not one of"):
        load(dataset, on_error="skip")


def test_an_edited_manifest_is_refused(dataset, tmp_path):
    copy = shutil.copytree(dataset, tmp_path / "copy")
    manifest = copy / "dataset.json"
    manifest.write_text(manifest.read_text().replace('"size": 224', '"size": 225'))
    for on_error in ("fail", "skip"):
        with pytest.raises(forebay.DataError, match="damaged or edited"):
            forebay.Loader(copy, on_error=on_error)
