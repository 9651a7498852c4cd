"""A folder of classes (photos/<class>/<name>.jpg) with ImageNet's usual augmentation."""

import forebay

forebay.demo_data("cv", ".", samples=24)

pipeline = (
    forebay.Pipeline.files("**/*.jpg", label="folder")
    .decode()
    .random_resized_crop(224, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), interpolation="bilinear")
    .random_horizontal_flip(p=0.5)
    .normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    .to_chw()
)
loader = forebay.Loader(pipeline, data="photos/", batch_size=8, shuffle=True, seed=7, drop_last=True)
for epoch in range(2):
    for batch in loader:
        images, labels = batch["image"], batch["label"]  # framework="torch" gives tensors, without a copy
        assert images.shape == (8, 3, 224, 224) and labels.max() < len(loader.classes)
    print(f"epoch {epoch}: {len(loader)} batches, classes {loader.classes}")
