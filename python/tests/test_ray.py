"""Builds as Ray tasks, where Ray is installed: `make test-remote` installs it."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forebay
import pytest
from test_remote import connect
from test_remote_servers import client_of, moto  # noqa: F401 (a fixture, asked for by its name)

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


def slow_pipeline() -> forebay.Pipeline:
    return forebay.Pipeline.files("**/*.jpg").decode().map(slow).resize((32, 32))


def build_losing_a_node(cluster: Any, output: Path | str, shards: Callable[[], int], **how: Any) -> forebay.Dataset:
    """Builds, and removes one of the nodes once some of the shards are there, but not all."""
    made, nodes = cluster
    seen = []

    def remove_a_node() -> None:
        while (there := shards()) < 3:
            time.sleep(0.01)
        seen.append(there)
        made.remove_node(nodes[1], allow_graceful=False)

    remover = threading.Thread(target=remove_a_node, daemon=True)
    remover.start()
    dataset = forebay.ray.build(slow_pipeline(), output, parts=6, shards=SHARDS, **how)
    remover.join(timeout=60)
    assert seen and seen[0] < SHARDS, "in the middle of the build"
    assert len(dataset) == 50
    return dataset


@pytest.fixture
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of moto, and an empty bucket there that the environment names: that of the nodes, too, if they are made later."""
    endpoint = request.getfixturevalue("moto")
    connect(monkeypatch, endpoint)
    client = client_of(endpoint)
    client.create_bucket(Bucket="ray-builds")
    return client


def test_a_node_that_is_lost_loses_nothing_in_a_bucket(bucket, cluster, photos, tmp_path):
    how = {"data": photos, "strategy": slow_pipeline().splits[-1]}
    forebay.build(slow_pipeline(), tmp_path / "plain", shards=SHARDS, **how)

    def keys() -> list[str]:
        return [found["Key"] for found in bucket.list_objects_v2(Bucket="ray-builds").get("Contents", [])]

    def shards() -> int:
        return sum(key.endswith(".tfrecord") for key in keys())

    build_losing_a_node(cluster, "s3://ray-builds/built", shards, **how)
    # Each once, with the bytes of a build on one machine, and no note of a part is left.
    found = {key.removeprefix("built/"): bucket.get_object(Bucket="ray-builds", Key=key)["Body"].read() for key in keys()}
    assert found == content(tmp_path / "plain")


def test_a_node_that_is_lost_loses_nothing(cluster, photos, tmp_path):
    pipeline = slow_pipeline()
    strategy = pipeline.splits[-1]
    plain = tmp_path / "plain"
    forebay.build(pipeline, plain, data=photos, strategy=strategy, shards=SHARDS)
    expected = content(plain)

    output = tmp_path / "built"
    dataset = build_losing_a_node(cluster, output, lambda: len(list(output.glob("shard-*.tfrecord"))), data=photos, strategy=strategy)
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
