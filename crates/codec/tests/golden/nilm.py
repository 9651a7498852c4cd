"""Writes what NumPy makes of a generated recording: `nilm.txt`, and `cream.hdf5`, the recording as h5py writes it.

    python nilm.py

Needs NumPy and h5py. The formulas are those of PRESTO, written down vector by vector; the Rust tests generate
the same recording from the same formula.
"""

import pathlib

import h5py
import numpy as np

PERIOD = 128
HERE = pathlib.Path(__file__).parent


def recording(samples):
    """Counts of a converter: a drifting offset, a voltage, and a current that lags and is switched on half way."""
    n = np.arange(samples, dtype=np.float64)
    turn = 2.0 * np.pi * n / PERIOD
    offset = 40.0 + n * 0.01
    voltage = np.rint(9000.0 * np.sin(turn) + offset)
    level = np.where(n < samples // 2, 700.0, 2900.0)
    current = np.rint(level * np.sin(turn - 0.7) + 150.0 * np.sin(3.0 * turn) + offset / np.sqrt(2.0))
    return voltage.astype(np.int16), current.astype(np.int16)


def remove_offset(voltage, current):
    length = len(voltage)
    padded = np.pad(voltage, (0, PERIOD - length % PERIOD))
    means = padded.reshape(-1, PERIOD).mean(axis=1)
    places = np.linspace(1, length, len(means)).astype(np.int64)
    offset = np.interp(np.arange(1, length + 1), places, means)
    return voltage - offset, current - offset / np.sqrt(2.0)


def features(voltage, current):
    periods = len(voltage) // PERIOD
    v = voltage[: periods * PERIOD].reshape(periods, PERIOD)
    i = current[: periods * PERIOD].reshape(periods, PERIOD)
    active = (v * i).mean(axis=1)
    v_rms = np.sqrt((v * v).mean(axis=1))
    i_rms = np.sqrt((i * i).mean(axis=1))
    apparent = v_rms * i_rms
    reactive = np.sqrt(apparent * apparent - active * active)
    return {
        "active": active,
        "reactive": reactive,
        "apparent": apparent,
        "factor": active / apparent,
        "voltage-rms": v_rms,
        "current-rms": i_rms,
        "cusum": np.cumsum(i_rms - i_rms.mean()),
    }


def main():
    factors = (0.0382, 0.00195)
    lines = [f"# NumPy {np.__version__}, h5py {h5py.__version__}"]
    # With a rest, and in whole periods, where the reference pads a whole period more.
    for samples in (20 * PERIOD + 37, 12 * PERIOD):
        voltage, current = (channel.astype(np.float64) for channel in recording(samples))
        voltage, current = remove_offset(voltage, current)
        voltage, current = voltage * factors[0], current * factors[1]
        lines.append(f"recording {samples} {factors[0]} {factors[1]}")
        rows = {"voltage": voltage[::97], "current": current[::97], **features(voltage, current)}
        lines += [" ".join([name, *(repr(float(value)) for value in row)]) for name, row in rows.items()]
    (HERE / "nilm.txt").write_text("\n".join(lines) + "\n")

    voltage, current = recording(20 * PERIOD + 37)
    with h5py.File(HERE / "cream.hdf5", "w") as file:
        file.attrs["frequency"] = 6400
        for name, channel, factor in (("voltage", voltage, factors[0]), ("current1", current, factors[1])):
            options = {"chunks": (512,), "compression": "gzip", "shuffle": True, "fletcher32": True}
            file.create_dataset(name, data=channel, **options).attrs["calibration_factor"] = factor
        group = file.create_group("plain")
        group["float32"] = voltage[:300].astype(np.float32)
        group["big"] = voltage[:300].astype(">f8")
        group["column"] = current[:300].reshape(-1, 1)
        group["table"] = np.zeros((4, 5))
        group["text"] = "no signal"


main()
