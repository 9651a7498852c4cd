"""Evaluation: files by name, each once, the labels those of training."""

import forebay

forebay.demo_data("cv", ".", samples=20)

classes = sorted({"unseen", *forebay.Loader("imagenet", data="photos/").classes})  # as training had them
pipeline = forebay.Pipeline.files("**/*.jpg").decode().resize(256).center_crop(224).normalize().to_chw()
loader = forebay.Loader(pipeline, data="photos/", batch_size=8, classes=classes)

keys, labels = [], []
for batch in loader:
    keys += batch["key"]
    labels += batch["label"].tolist()
assert keys == sorted(keys) and len(keys) == loader.samples == 20
assert all(classes[label] == key.split("/")[0] for key, label in zip(keys, labels, strict=True))
print(f"{len(keys)} files in order")
