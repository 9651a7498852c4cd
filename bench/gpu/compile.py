"""Compile the kernels of `forebay.gpu` for GPUs that need not be here, and say how large they are.

    .venv/bin/python bench/gpu/compile.py [--quick] [TARGET...]      sm_80 sm_90 gfx942 unless given

Every kernel with all of the constants that a batch may give it: each width of rows, number of channels, depth and output. With `--quick`
the kernels that keep a row in registers, which are the most work, are compiled for the narrowest and the widest rows only, and outputs for
one, three and four channels. Exit code 1: one was not compiled, or wants more of a GPU than it has.
"""

from __future__ import annotations

import itertools
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import triton
from forebay.gpu import _batch, _kernels
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

#: What Triton calls a device, the kind of binary that it runs, and the bytes of shared memory that a program may have there.
TARGETS = {
    "sm_80": (GPUTarget("cuda", 80, 32), "cubin", 163 << 10),
    "sm_90": (GPUTarget("cuda", 90, 32), "cubin", 227 << 10),
    "gfx942": (GPUTarget("hip", "gfx942", 64), "hsaco", 64 << 10),
}
ROW_KERNELS = {
    "predict": ["*i64", "*u8"],
    "entropy": ["*i64", "*u8", "*i16", "*i64", "*i32", "*i32", "*i32", "*u8", "*i32"],
}


@dataclass(frozen=True)
class Kernel:
    """A kernel, with the types of its arguments and its constants."""

    name: str
    types: list[str]
    constants: dict[str, Any]
    warps: int = 4

    def __str__(self) -> str:
        constants = ", ".join(f"{name} {value}" for name, value in self.constants.items())
        return f"{self.name} ({constants})"


def kernels(quick: bool) -> list[Kernel]:
    """All that a batch may want."""
    blocks = [1 << power for power in range(_batch.BLOCK_MIN.bit_length() - 1, _batch.BLOCK_MAX.bit_length())]
    blocks = [blocks[0], blocks[-1]] if quick else blocks
    found = [
        Kernel("block_offsets", ["*i64", "*u8", "*i32", "*i32"], {"CHUNK": _batch.HEADERS}),
        Kernel("unpack", ["*i64", "*u8", "*i32", "*u8"], {"BLOCK_COUNT": _batch.UNPACKED_BLOCKS}),
    ]
    for sample_bytes, block, (name, types) in itertools.product((1, 2), blocks, ROW_KERNELS.items()):
        found.append(Kernel(name, types, {"BYTES": sample_bytes, "BLOCK": block}, _batch.warps(block)))
    for planes, sample_bytes, first in itertools.product((1, 3, 4) if quick else (1, 2, 3, 4), (1, 2), (False, True)):
        for output, affine in ((f"u{8 * sample_bytes}", False), ("fp32", True), ("fp16", True), ("fp16", False)):
            if quick and (output == "fp16" or first != affine):
                continue
            constants = {"PLANES": planes, "BYTES": sample_bytes, "AFFINE": affine, "CHANNELS_FIRST": first}
            types = ["*i64", "*u8", f"*{output}", "*fp32"]
            found.append(Kernel("finish", types, {**constants, "BLOCK": _batch.FINISHED_PIXELS}))
    return found


def compiled(target: str, kernel: Kernel) -> tuple[int, int]:
    """The bytes of the binary, and those of shared memory."""
    device, kind, shared_bytes_max = TARGETS[target]
    function = getattr(_kernels, kernel.name)
    signature = dict(zip(function.arg_names, kernel.types, strict=False)) | dict.fromkeys(kernel.constants, "constexpr")
    source = ASTSource(fn=function, signature=signature, constexprs=kernel.constants)
    made = triton.compile(source, target=device, options={"num_warps": kernel.warps, "enable_fp_fusion": False})
    if made.metadata.shared > shared_bytes_max:
        raise MemoryError(f"{made.metadata.shared:,} bytes of shared memory are wanted, of {shared_bytes_max:,}")
    return len(made.asm[kind]), made.metadata.shared


def attempted(target: str, kernel: Kernel) -> tuple[int, int] | str:
    """The same, or what is wrong: exceptions of Triton's compiler cannot be handed from process to process."""
    try:
        return compiled(target, kernel)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main() -> int:
    quick = "--quick" in sys.argv
    targets = [name for name in sys.argv[1:] if name != "--quick"] or list(TARGETS)
    wanted, failures = kernels(quick), 0
    with ProcessPoolExecutor(2) as pool:
        for target in targets:
            begun, sizes, shared = time.perf_counter(), [], 0
            for kernel, made in zip(wanted, pool.map(attempted, [target] * len(wanted), wanted), strict=True):
                if isinstance(made, str):
                    failures += 1
                    print(f"{target}: {kernel}: {made}", file=sys.stderr)
                else:
                    sizes.append(made[0])
                    shared = max(shared, made[1])
            total = f"{len(sizes)} kernels of {sum(sizes):,} B, with up to {shared:,} B of shared memory"
            print(f"{target}: {total}, in {time.perf_counter() - begun:.1f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
