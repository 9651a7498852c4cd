"""A packed language model: web pages become windows of 256 tokens with position and segment ids, built once, then shuffled and resumed."""

import forebay
import numpy

forebay.demo_data("nlp", ".", samples=40)  # and a vocabulary that is learned from the pages

pipeline = (
    forebay.Pipeline.files("**/*.html", label=None, field="input_ids")
    .extract_text()
    .tokenize("tokenizer.tiktoken")
    .pack(256, packing_strategy="bfd_split", outputs=["position_ids", "segment_ids", "labels"])
)
dataset = forebay.build(pipeline, "windows/", data="pages/", strategy="packed", shards=4)

tokens = 0
loader = forebay.Loader(dataset, batch_size=8, shuffle=True, seed=7)
for batch in loader:
    ids, segments, labels = batch["input_ids"], batch["segment_ids"], batch["labels"]
    assert ids.shape == segments.shape == labels.shape == batch["position_ids"].shape
    # What FlexAttention's or xFormers' block-diagonal masks are made of: a token sees those of its own document that come before it.
    sees = (segments[:, :, None] == segments[:, None, :]) & numpy.tri(256, dtype=bool)
    assert sees[segments > 0].any(axis=-1).all() and (labels[segments == 0] == -100).all()
    tokens += int((segments > 0).sum())
filled = tokens / (loader.samples * 256)
assert filled > 0.8, filled

# A run that was interrupted continues where it was: windows are samples like any others.
half = forebay.Loader(dataset, batch_size=8, shuffle=True, seed=7)
first = next(iter(half))
state = half.state_dict()
rest = forebay.Loader(dataset, batch_size=8, shuffle=True, seed=7)
rest.load_state_dict(state)
keys = list(first["key"]) + [key for batch in rest for key in batch["key"]]
assert len(keys) == len(set(keys)) == loader.samples
print(f"{loader.samples} windows of 256 tokens, {100 * filled:.0f} % of them documents")
