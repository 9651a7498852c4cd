"""torchrun: each process loads the share of its rank, and the loader's position is in the checkpoint of the model.

    torchrun --nproc-per-node 2 torchrun_training.py

Run it again after a stop, with any number of processes, and it continues where it was.
"""

import os
import sys
from datetime import timedelta
from pathlib import Path

import forebay
import torch
import torch.distributed as dist

STOP_AFTER = int(os.environ.get("STOP_AFTER", "1000000"))
CHECKPOINT = Path("checkpoint.pt")

# The others wait while one of them builds; without `timeout`, that fails after 30 minutes.
dist.init_process_group("gloo", timeout=timedelta(days=1))
rank = dist.get_rank()
if rank == 0 and not Path("dataset").exists():
    forebay.demo_data("cv", ".", samples=40)
    forebay.build("cv", "dataset/", data="photos/", strategy="resized", shards=4)
dist.barrier()

# The rank comes from RANK and WORLD_SIZE, which torchrun sets. A URL, as s3://bucket/dataset, would do as well.
loader = forebay.Loader("dataset/", batch_size=4, shuffle=True, seed=7, even="drop", framework="torch")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, len(loader.classes)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
if CHECKPOINT.exists():
    saved = torch.load(CHECKPOINT)
    model.load_state_dict(saved["model"])
    loader.load_state_dict(saved["loader"])

for step, batch in enumerate(loader):
    pixels = batch["image"].float().mean(dim=(1, 2)) / 255
    loss = torch.nn.functional.cross_entropy(model(pixels), batch["label"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with Path(f"seen-{rank}.txt").open("a") as seen:
        print(*batch["key"], sep="\n", file=seen)
    # The position is the same on every rank: one of them saves it.
    if rank == 0:
        torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, CHECKPOINT)
    if step + 1 == STOP_AFTER:
        print(f"rank {rank} of {dist.get_world_size()} stops after {step + 1} steps")
        dist.destroy_process_group()
        sys.exit()

print(f"rank {rank} of {dist.get_world_size()}: the epoch is over, after {step + 1} steps here")
dist.destroy_process_group()
