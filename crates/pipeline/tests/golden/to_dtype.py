"""Writes to_dtype.txt beside itself: what torchvision.transforms.v2.ToDtype (and so torch) makes of numbers of each type.

    python crates/pipeline/tests/golden/to_dtype.py        # wants torch and torchvision

A line has the type before, the type after, whether values are scaled, and the bytes of the numbers before and after, little-endian, in hexadecimal
digits; `tests/it/dtypes.rs` converts the same and compares.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torchvision
from torchvision.transforms import v2

BYTES = torch.cat([torch.arange(0, 255, 6), torch.tensor([127, 255])])
GIVEN = {
    torch.uint8: BYTES,
    torch.int16: torch.cat([BYTES * 128, torch.tensor([1, 77, 32767])]),
    torch.float32: torch.cat([torch.linspace(0, 1, 40), BYTES / 255, torch.tensor([0.3, 1 - 2**-24])]),
    torch.float64: torch.linspace(0, 1, 30, dtype=torch.float64),
    torch.float16: torch.linspace(0, 1, 30),
    torch.bfloat16: torch.linspace(0, 1, 30),
}
WANTED = [torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def digits(values: torch.Tensor) -> str:
    return values.contiguous().view(torch.uint8).numpy().tobytes().hex()


lines = []
for before, numbers in GIVEN.items():
    for after, scale in [(after, scale) for after in WANTED if after != before for scale in (False, True)]:
        given = numbers.to(before)
        if scale and before in (torch.float16, torch.bfloat16) and not after.is_floating_point:
            continue  # torch multiplies in halves, where 1.0 becomes 256, and that the byte 0
        if not scale and not after.is_floating_point and not before.is_floating_point:
            given = given[given.to(torch.int64) <= torch.iinfo(after).max]  # what a type does not have wraps around in torch; here it is cut off
        try:
            made = v2.functional.to_dtype(given, after, scale=scale)
        except RuntimeError as error:  # "cannot be performed safely"
            print(f"not {name(before)} to {name(after)}: {error}")
            continue
        lines.append("\t".join([name(before), name(after), str(scale).lower(), digits(given), digits(made)]))
(Path(__file__).parent / "to_dtype.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
print(f"torch {torch.__version__}, torchvision {torchvision.__version__}: {len(lines)} lines")
