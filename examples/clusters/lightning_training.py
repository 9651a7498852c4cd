"""Lightning: a Forebay loader is a data loader, its rank comes from the trainer, and its position is in Lightning's checkpoints."""

from pathlib import Path

import forebay
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

forebay.demo_data("cv", ".", samples=40)
forebay.build("cv", "dataset/", data="photos/", strategy="resized", shards=4)
seen: list[str] = []


class Data(lightning.LightningDataModule):
    def train_dataloader(self) -> forebay.Loader:
        # It has `state_dict` and `load_state_dict`, which Lightning calls when it writes and reads a checkpoint.
        return forebay.Loader(
            "dataset/",
            batch_size=4,
            shuffle=True,
            seed=7,
            even="drop",
            framework="torch",
            rank=self.trainer.global_rank,
            world_size=self.trainer.world_size,
        )


class Model(lightning.LightningModule):
    def __init__(self, stop_after: int | None = None) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 10)
        self.stop_after = stop_after

    def training_step(self, batch: dict[str, torch.Tensor], number: int) -> torch.Tensor:
        if number == self.stop_after:
            raise KeyboardInterrupt("the machine is taken away")
        seen.extend(batch["key"])
        pixels = batch["image"].float().mean(dim=(1, 2)) / 255
        return torch.nn.functional.cross_entropy(self.layer(pixels), batch["label"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def trainer() -> lightning.Trainer:
    # Lightning would put a sampler of its own into a data loader; Forebay's shares are made already.
    return lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
        callbacks=[ModelCheckpoint(dirpath="checkpoints", every_n_train_steps=1, save_last=True)],
    )


try:
    trainer().fit(Model(stop_after=3), Data())
except (KeyboardInterrupt, SystemExit):
    print("stopped after 3 of 10 steps")
assert len(seen) == 12

trainer().fit(Model(), Data(), ckpt_path=Path("checkpoints/last.ckpt"))
assert len(seen) == 2 * 40, len(seen)
assert len(set(seen[:40])) == len(set(seen[40:])) == 40, "each sample once in each epoch"
print("two epochs: each sample once in each, though the first was interrupted")
