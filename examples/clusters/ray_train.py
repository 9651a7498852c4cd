"""Ray Train: each worker loads the share of its rank, and the loader's position is in the checkpoint, so that a worker that dies costs no sample."""

import json
import tempfile
from pathlib import Path
from typing import Any

import forebay
import ray
import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer


def train(config: dict[str, Any]) -> None:
    context = ray.train.get_context()
    rank = context.get_world_rank()
    loader = forebay.Loader(
        config["dataset"], batch_size=4, shuffle=True, seed=7, even="drop", threads=1, rank=rank, world_size=context.get_world_size()
    )
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is not None:
        with checkpoint.as_directory() as folder:
            loader.load_state_dict(json.loads(Path(folder, "loader.json").read_text()))
    for step, batch in enumerate(loader):
        if checkpoint is None and rank == 1 and step == 2:
            raise RuntimeError("the machine is taken away")
        # Train on it here.
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "loader.json").write_text(json.dumps(loader.state_dict()))
            # The position is the same on every rank: one of them saves it, with the model.
            saved = ray.train.Checkpoint.from_directory(folder) if rank == 0 else None
            ray.train.report({"step": step}, checkpoint=saved)
        # What was reported is done, and what was not is done again.
        with Path(config["seen"], f"{rank}.txt").open("a") as seen:
            print(*batch["key"], sep="\n", file=seen)


if __name__ == "__main__":
    here = Path.cwd()
    forebay.demo_data("cv", here, samples=40)
    # All nodes must reach it: a shared folder, or a URL as s3://bucket/dataset.
    forebay.build("cv", here / "dataset", data=here / "photos", strategy="resized", shards=4)
    (here / "seen").mkdir()
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    trainer = DataParallelTrainer(
        train,
        train_loop_config={"dataset": str(here / "dataset"), "seen": str(here / "seen")},
        scaling_config=ray.train.ScalingConfig(num_workers=2),
        run_config=ray.train.RunConfig(
            storage_path=str(here / "results"), failure_config=ray.train.FailureConfig(max_failures=1)
        ),
    )
    trainer.fit()
    ray.shutdown()
    keys = [key for path in (here / "seen").iterdir() for key in path.read_text().split()]
    assert len(keys) == len(set(keys)) == 40, f"{len(keys)} samples, {len(set(keys))} different"
    print("an epoch of 40 samples on two workers: each once, though one of them failed", flush=True)
