"""Progressive records: a part of each image, and another part in the next epoch."""

from pathlib import Path

import forebay
import numpy as np
import pytest


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    work = tmp_path_factory.mktemp("progressive")
    demo = forebay.demo_data("cv", work / "demo", samples=24, progress=False)
    pipeline = forebay.Pipeline.files(label="folder").decode().resize(64).center_crop(64)
    built = forebay.build(pipeline, work / "pcr", data=demo.data, strategy="concatenated+pcr", progress=False)
    plain = forebay.build(pipeline, work / "plain", data=demo.data, strategy="concatenated", progress=False)
    return built.path, plain.path


def images(loader: forebay.Loader) -> np.ndarray:
    return np.concatenate([batch["image"] for batch in loader])


def test_quality_changes_between_epochs(folders: tuple[str, str]) -> None:
    progressive, plain = folders
    expected = images(forebay.Loader(plain, batch_size=8))
    loader = forebay.Loader(progressive, batch_size=8, scans=1)
    assert loader.scans == 1
    errors, read = [], []
    for scans in (1, 2, 5, 10):
        loader.scans = scans
        errors.append(float(np.abs(images(loader).astype(float) - expected).mean()))
        read.append(loader.stats().bytes_read - sum(read))
    assert errors[-1] == 0
    assert errors == sorted(errors, reverse=True)
    assert read == sorted(read) and read[0] < read[-1]


def test_what_cannot_be_asked_for(folders: tuple[str, str], tmp_path: Path) -> None:
    progressive, plain = folders
    with pytest.raises(forebay.UsageError, match="no progressive records"):
        forebay.Loader(plain, scans=2)
    with pytest.raises(forebay.UsageError, match="scans"):
        forebay.Loader(progressive, scans=11)
    loader = forebay.Loader(progressive)
    with pytest.raises(forebay.UsageError, match="scans"):
        loader.scans = 0
    assert loader.scans is None
