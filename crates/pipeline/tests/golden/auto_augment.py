"""Writes auto_augment.txt beside itself: the policies that AutoAugment learned, as torchvision has them.

    python crates/pipeline/tests/golden/auto_augment.py        # wants torch and torchvision

A line is a policy and twice a change, its probability and which of ten strengths it has (`-`: it has none). The tests compare them with the
table of `auto_augment.rs`, and the draws with what follows from them.
"""

from __future__ import annotations

from pathlib import Path

import torchvision
from torchvision.transforms import AutoAugmentPolicy, v2

lines = []
for policy in (AutoAugmentPolicy.IMAGENET, AutoAugmentPolicy.CIFAR10, AutoAugmentPolicy.SVHN):
    transform = v2.AutoAugment(policy)
    for pair in transform._get_policies(policy):
        changes = [field for name, p, strength in pair for field in (name, repr(p), "-" if strength is None else str(strength))]
        lines.append("\t".join([policy.value, *changes]))
(Path(__file__).parent / "auto_augment.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torchvision {torchvision.__version__}: {len(lines)} pairs")
