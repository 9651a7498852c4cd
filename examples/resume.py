"""Stop in the middle of an epoch and continue later: the state goes into the checkpoint."""

import json
from pathlib import Path

import forebay

forebay.demo_data("cv", ".", samples=30)
OPTIONS = {"data": "photos/", "batch_size": 4, "shuffle": True, "seed": 7}

loader = forebay.Loader("imagenet", **OPTIONS)
seen = []
for batch in loader:
    seen += batch["key"]
    if len(seen) == 12:
        Path("checkpoint.json").write_text(json.dumps(loader.state_dict()))  # next to the model's weights
        break

resumed = forebay.Loader("imagenet", **OPTIONS)  # in a new process, on any number of ranks
resumed.load_state_dict(json.loads(Path("checkpoint.json").read_text()))
rest = [key for batch in resumed for key in batch["key"]]
assert len(seen + rest) == len(set(seen + rest)) == 30
print("30 samples, each once, in two sittings")
