"""Data-parallel training: each rank takes its share of every epoch, and all have as many batches."""

import forebay

forebay.demo_data("cv", ".", samples=30)


def loader_of(rank: int, world_size: int) -> forebay.Loader:
    # Under torchrun, leave rank and world_size out: they come from its environment.
    return forebay.Loader(
        "imagenet", data="photos/", batch_size=4, shuffle=True, seed=7, even="drop", rank=rank, world_size=world_size
    )


ranks = [loader_of(rank, 4) for rank in range(4)]
batches = [[batch["key"] for batch in loader] for loader in ranks]
assert len({len(taken) for taken in batches}) == 1, "no rank waits for another at the end"
keys = [key for taken in batches for batch in taken for key in batch]
assert len(keys) == len(set(keys)) == 28, "each sample once, and two that four ranks cannot share are left out"
print(f"{len(batches[0])} batches on each of 4 ranks")
