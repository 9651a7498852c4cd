"""Builds as Ray tasks, where Ray is installed: `make test-remote` installs it."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forebay
import pytest

if os.environ.get("FOREBAY_REMOTE") != "required":
    pytest.importorskip("ray", reason="Ray is not installed: `make test-remote` installs it")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import forebay.ray
    import ray
    from ray.cluster_utils import Cluster

# Ray warns of its own future.
pytestmark = pytest.mark.filterwarnings("ignore")
SHARDS = 12


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head that runs nothing and two nodes, all on this machine."""
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # The nodes must have the functions of this file.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        nodes = [made.add_node(num_cpus=1) for _ in range(2)]
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False)
        yield made, nodes
    finally:
        ray.shutdown()
        made.shutdown()


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def slow(image: Any) -> Any:
    time.sleep(0.02)
    return image


def test_a_node_that_is_lost_loses_nothing(cluster, photos, tmp_path):
    made, nodes = cluster
    pipeline = forebay.Pipeline.files("**/*.jpg").decode().map(slow).resize((32, 32))
    strategy = pipeline.splits[-1]
    plain = tmp_path / "plain"
    forebay.build(pipeline, plain, data=photos, strategy=strategy, shards=SHARDS)
    expected = content(plain)

    output = tmp_path / "built"

    def remove_a_node() -> None:
        # Once some shards are there.
        while len(list(output.glob("shard-*.tfrecord"))) < 3:
            time.sleep(0.01)
        made.remove_node(nodes[1], allow_graceful=False)

    remover = threading.Thread(target=remove_a_node, daemon=True)
    remover.start()
    dataset = forebay.ray.build(pipeline, output, parts=6, data=photos, strategy=strategy, shards=SHARDS)
    remover.join()
    assert len(dataset) == 50
    assert content(output) == expected

    # What is finished is kept, and errors of a build are what they are without Ray.
    again = forebay.ray.build(pipeline, output, parts=6, data=photos, strategy=strategy, shards=SHARDS)
    assert again.manifest == dataset.manifest
    with pytest.raises(forebay.Error, match="nothing-there"):
        forebay.ray.build(pipeline, tmp_path / "other", parts=2, data=tmp_path / "nothing-there", strategy=strategy)
    with pytest.raises(forebay.UsageError, match="at least as many `shards`"):
        forebay.ray.build(pipeline, tmp_path / "other", parts=4, data=photos, strategy=strategy, shards=2)

    # Measuring is a task like any other.
    measure = ray.remote(num_cpus=1)(forebay.profile)
    settings = {"samples": 4, "seconds": 0, "runs": 1, "strategies": ["concatenated", "resized"], "threads": 1, "work": str(tmp_path)}
    storages = ["ceph-hdd", "custom:read=200MB/s,seek=50ms"]
    profiles = ray.get([measure.remote("cv", str(photos), storage=storage, **settings) for storage in storages])
    assert [profile.plan().chosen in ("concatenated", "resized") for profile in profiles] == [True, True]
