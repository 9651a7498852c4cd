"""Writes `rms.txt`: what NumPy gives for the root mean square of the periods of generated arrays, of every element type.

    python rms.py

Needs NumPy. The Rust tests generate the same arrays from the same formula. Whole numbers are made float64 first: squared in
their own type they would wrap around.
"""

import pathlib

import numpy as np

CASES = ((2500, 500), (1037, 7), (1037, 8), (2600, 129), (5000, 1300))


def generated(dtype, count):
    bits = (np.arange(count, dtype=np.uint64) * np.uint64(2654435761) + np.uint64(12345)) % np.uint64(2**32)
    signed = bits.astype(np.int64) - 2**31
    match dtype:
        case "uint8":
            return (bits >> np.uint64(24)).astype(np.uint8)
        case "uint16":
            return (bits >> np.uint64(16)).astype(np.uint16)
        case "int16":
            return (signed >> 16).astype(np.int16)
        case "int32":
            return signed.astype(np.int32)
        case "int64":
            return signed * 1_000_003
        case "float32":
            return (signed / 65536.0).astype(np.float32)
        case "float64":
            return signed / 65536.0


def main():
    lines = [f"# NumPy {np.__version__}"]
    for dtype in ("uint8", "uint16", "int16", "int32", "int64", "float32", "float64"):
        for count, period in CASES:
            values = generated(dtype, count)
            if values.dtype.kind != "f":
                values = values.astype(np.float64)
            parts = values[: count // period * period].reshape(-1, period)
            found = [np.sqrt(np.mean(np.square(part))) for part in parts]
            assert all(value.dtype == values.dtype for value in found)
            lines.append(" ".join([dtype, str(count), str(period), *(repr(float(value)) for value in found)]))
    pathlib.Path(__file__).with_name("rms.txt").write_text("\n".join(lines) + "\n")


main()
