"""ImageNet recipes: torchvision's second one, timm's, and two views for contrastive learning.

The first is that of torchvision's references (v2), with its repeated augmentation (`repeats=4`); policies warp bilinearly there, not by the nearest
pixel as is the class's default. The second is what timm does by `--aa
rand-m9-mstd0.5-inc1 --mixup 0.2 --reprob 0.25 --remode pixel --smoothing 0.1 --train-interpolation bilinear`; without the last, timm draws bilinear or
bicubic for each image, and warps are never bicubic here.
"""

import forebay

forebay.demo_data("cv", ".", samples=24)

decoded = forebay.Pipeline.files("**/*.jpg", label="folder").decode()
reference = (  # pass `repeats=4`, as `--ra-sampler --ra-reps 4`
    decoded.random_resized_crop(176)
    .random_horizontal_flip()
    .trivial_augment_wide(interpolation="bilinear")
    .normalize()
    .to_chw()
    .random_erasing(p=0.1)
    .one_hot(1000, label_smoothing=0.1)
    .mixup_or_cutmix(mixup_alpha=0.2, cutmix_alpha=1.0)
)
timm = (
    decoded.random_resized_crop(224)
    .random_horizontal_flip()
    .rand_augment_transform("rand-m9-mstd0.5-inc1")
    .normalize()
    .to_chw()
    .random_erasing(p=0.25, scale=(0.02, 1 / 3), ratio=(0.3, 1 / 0.3), value="random")
    .one_hot(1000, label_smoothing=0.1)
    .mixup(alpha=0.2)
)
contrastive = (  # two views of each image, as SimCLR draws them: pass `repeats=2`
    decoded.random_resized_crop(96)
    .random_horizontal_flip()
    .random_apply(forebay.Steps().color_jitter(0.8, 0.8, 0.8, 0.2), p=0.8)
    .random_grayscale(p=0.2)
    .random_apply(forebay.Steps().gaussian_blur(9, sigma=(0.1, 2.0)), p=0.5, name="blur")
    .normalize()
    .to_chw()
)
for name, pipeline, size in [("reference", reference, 176), ("timm", timm, 224), ("contrastive", contrastive, 96)]:
    repeats = {"reference": 4, "contrastive": 2}.get(name, 1)
    for batch in forebay.Loader(pipeline, data="photos/", batch_size=8, shuffle=True, seed=7, repeats=repeats):
        assert batch["image"].shape == (8, 3, size, size)
        assert name == "contrastive" or abs(batch["label"].sum() - 8) < 1e-3
    print(f"{name}: images of {size} x {size}")
