"""Compile the kernels of `forebay.gpu` for GPUs that need not be here, and say how large they are.

    .venv/bin/python bench/gpu/compile.py [--quick] [TARGET...]      sm_80 sm_90 gfx942 unless given

With `--quick`, only the last of them gets all kernels; the others get those that are the most work.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import triton
from forebay.gpu import _kernels
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

#: Which kernels, with the types of their arguments and their constants: as a batch of RGB images of up to 512 columns uses them, and 16 bits.
ROW8, ROW16 = {"BYTES": 1, "BLOCK": 128}, {"BYTES": 2, "BLOCK": 128}
PLAIN = {"PLANES": 3, "BYTES": 1, "AFFINE": False, "CHANNELS_FIRST": False, "BLOCK": 512}
FLOAT = {**PLAIN, "AFFINE": True, "CHANNELS_FIRST": True}
ENTROPY = ["*i64", "*u8", "*i16", "*i64", "*i32", "*i32", "*i32", "*u8", "*i32"]
KERNELS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("block_offsets", ["*i64", "*u8", "*i32", "*i32"], {"CHUNK": 256}),
    ("unpack", ["*i64", "*u8", "*i32", "*u8"], {"BLOCK_COUNT": 16}),
    ("predict", ["*i64", "*u8"], ROW8),
    ("predict", ["*i64", "*u8"], ROW16),
    ("entropy", ENTROPY, ROW8),
    ("entropy", ENTROPY, ROW16),
    ("finish", ["*i64", "*u8", "*u8", "*fp32"], PLAIN),
    ("finish", ["*i64", "*u8", "*fp32", "*fp32"], FLOAT),
]


def target(name: str) -> tuple[GPUTarget, str]:
    """What Triton calls a device, and the kind of binary that it runs."""
    if name.startswith("sm_"):
        return GPUTarget("cuda", int(name.removeprefix("sm_")), 32), "cubin"
    return GPUTarget("hip", name, 64), "hsaco"


def compiled(name: str, all_of_them: bool) -> str:
    device, kind = target(name)
    begun, sizes = time.perf_counter(), []
    for kernel, types, constants in KERNELS:
        if not all_of_them and (constants == ROW16 or kernel in ("block_offsets", "finish")):
            continue
        function = getattr(_kernels, kernel)
        names = function.arg_names
        signature = dict(zip(names, types, strict=False)) | dict.fromkeys(constants, "constexpr")
        source = ASTSource(fn=function, signature=signature, constexprs=constants)
        options = {"num_warps": 1 if constants in (ROW8, ROW16) else 4, "enable_fp_fusion": False}
        made = triton.compile(source, target=device, options=options)
        sizes.append(f"{kernel} {len(made.asm[kind]):,} B")
    return f"{name}: {', '.join(sizes)} in {time.perf_counter() - begun:.1f} s"


def main() -> None:
    quick = "--quick" in sys.argv
    names = [name for name in sys.argv[1:] if name != "--quick"] or ["sm_80", "sm_90", "gfx942"]
    with ThreadPoolExecutor(2) as pool:
        for line in pool.map(compiled, names, [not quick or name == names[-1] for name in names]):
            print(line, flush=True)


if __name__ == "__main__":
    main()
