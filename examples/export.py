"""Build once, load fast, and export tars that WebDataset reads."""

import tarfile

import forebay

forebay.demo_data("cv", ".", samples=24)

profile = forebay.profile("cv", "photos/", samples=24, fast=True, seconds=0)
plan = profile.plan(max_storage="1GB", max_prep_time="1h")
print(plan)
dataset = forebay.build("cv", "dataset/", data="photos/", strategy="resized")
assert sum(len(batch["label"]) for batch in forebay.Loader(dataset, batch_size=8)) == 24

(tar, *_) = dataset.export_tar("tars/")
with tarfile.open(tar) as members:
    print(sorted({name.split(".", 1)[1] for name in members.getnames()}))
