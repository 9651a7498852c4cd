"""Times decoding, log-mel spectrograms and NILM features on one core: Forebay compared with librosa and NumPy, in the same run.

    python bench/domains/audio_signal.py [--data <folder of the test data>] [--rounds 50]

Makes itself an environment with NumPy and librosa in `target/bench-domains`, builds the example `audio_signal_speed` of
`forebay-codec` (as `make build` builds the program), and prints a table. Both sides get the same bytes, do the same work, run on
the same core one after the other, and count the time on the processor of the fastest of their rounds. Each Python line says which code it times; where
there are several ways, the fastest counts for the ratio.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
ENVIRONMENT = ROOT / "target" / "bench-domains"
THREADS = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"]
PERIOD = 128
SECONDS, RATE = 10, 6400


def enter_environment():
    """Runs this script again with the environment's Python, on one core and with one thread."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy", "librosa"], check=True)
    core = str(max(os.sched_getaffinity(0)))
    variables = {**os.environ, **dict.fromkeys(THREADS, "1"), "BENCH_DOMAINS": "1"}
    arguments = ["taskset", "-c", core, str(python), *sys.argv]
    os.execvpe(arguments[0], arguments, variables)


def fastest(task, rounds):
    task()
    times = []
    for _ in range(rounds):
        start = time.thread_time_ns()
        task()
        times.append(time.thread_time_ns() - start)
    return min(times)


def spectrogram_tasks(samples, rate):
    import librosa
    import numpy as np

    frame, step = rate // 50, rate // 100
    mel = librosa.filters.mel(sr=rate, n_fft=1024, n_mels=80, fmin=125, fmax=3800, htk=True, norm=None)

    def whole():
        floats = samples.astype(np.float32) / 32768
        power = librosa.feature.melspectrogram(
            y=floats, sr=rate, n_fft=1024, hop_length=step, win_length=frame, center=False, power=1.0,
            n_mels=80, fmin=125, fmax=3800, htk=True, norm=None,
        )
        return np.log(power + 1e-8)

    def parts():
        """The same with the filterbank made once."""
        floats = samples.astype(np.float32) / 32768
        spectrum = librosa.stft(floats, n_fft=1024, hop_length=step, win_length=frame, center=False)
        return np.log(mel @ np.abs(spectrum) + 1e-8)

    return {"librosa.feature.melspectrogram": whole, "librosa.stft, matrix made before": parts}


def nilm_tasks(voltage, current, reactive):
    import numpy as np

    def power_of(active, v_rms, i_rms):
        if not reactive:
            return active
        apparent = v_rms * i_rms
        return np.sqrt(np.maximum(apparent * apparent - active * active, 0.0))

    def vectors():
        v, i = voltage.reshape(-1, PERIOD), current.reshape(-1, PERIOD)
        active = (v * i).mean(axis=1)
        i_rms = np.sqrt(np.square(i).mean(axis=1))
        v_rms = np.sqrt(np.square(v).mean(axis=1)) if reactive else None
        return np.stack([power_of(active, v_rms, i_rms), i_rms, np.cumsum(i_rms - i_rms.mean())])

    def einsum():
        """Without the products in between."""
        v, i = voltage.reshape(-1, PERIOD), current.reshape(-1, PERIOD)
        active = np.einsum("pn,pn->p", v, i) / PERIOD
        i_rms = np.sqrt(np.einsum("pn,pn->p", i, i) / PERIOD)
        v_rms = np.sqrt(np.einsum("pn,pn->p", v, v) / PERIOD) if reactive else None
        return np.stack([power_of(active, v_rms, i_rms), i_rms, np.cumsum(i_rms - i_rms.mean())])

    def periods():
        """Period by period in a loop, as PRESTO's code goes about it."""
        starts = range(0, len(voltage), PERIOD)
        active = np.array([np.mean(voltage[s : s + PERIOD] * current[s : s + PERIOD]) for s in starts])
        i_rms = np.array([np.sqrt(np.mean(np.square(current[s : s + PERIOD]))) for s in starts])
        v_rms = np.array([np.sqrt(np.mean(np.square(voltage[s : s + PERIOD]))) for s in starts]) if reactive else None
        return np.stack([power_of(active, v_rms, i_rms), i_rms, np.cumsum(i_rms - i_rms.mean())])

    return {"NumPy, whole vectors": vectors, "NumPy, einsum": einsum, "NumPy, a loop over periods": periods}


def ours(example, sound, signal, rounds):
    lines = subprocess.run([example, sound, signal, str(rounds)], capture_output=True, text=True, check=True).stdout
    return {name: int(nanoseconds) for name, nanoseconds in (line.split() for line in lines.splitlines())}


# The targets, if any: this many times as fast as the first way of the Python stack, which is the usual one.
BAR = 3


def report(title, our_nanoseconds, theirs, bar=None):
    print(f"\n{title}\n  {our_nanoseconds / 1e3:10.1f} µs  Forebay")
    for name, nanoseconds in theirs.items():
        print(f"  {nanoseconds / 1e3:10.1f} µs  {name}: {nanoseconds / our_nanoseconds:.1f} times as long")
    ratio = min(theirs.values()) / our_nanoseconds
    usual = next(iter(theirs.values())) / our_nanoseconds
    verdict = f"; to the usual: {usual:.2f}, {'holds' if usual >= bar else 'MISSED'} (bar {bar})" if bar else ""
    print(f"  ratio to the fastest: {ratio:.2f}{verdict}")


def main():
    if "BENCH_DOMAINS" not in os.environ:
        build = ["cargo", "build", "--release", "-p", "forebay-codec", "--example", "audio_signal_speed"]
        if "--no-build" not in sys.argv:
            subprocess.run(build, cwd=ROOT, check=True)
        enter_environment()
    import warnings

    import librosa
    import numpy as np
    import soundfile

    # At 48 kHz some of the 80 bands are narrower than a bin.
    warnings.filterwarnings("ignore", message="Empty filters")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("FOREBAY_TEST_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(data))
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--no-build", action="store_true", help="time the example as it was built last")
    options = parser.parse_args()
    example = TARGET / "release" / "examples" / "audio_signal_speed"
    print(f"librosa {librosa.__version__}, NumPy {np.__version__}, Python {sys.version.split()[0]}, one core, best of {options.rounds}")

    generator = np.random.default_rng(7)
    turn = 2 * np.pi * np.arange(SECONDS * RATE) / PERIOD
    voltage = 325 * np.sin(turn) + generator.normal(0, 1, len(turn))
    current = 4 * np.sin(turn - 0.5) + generator.normal(0, 0.1, len(turn))
    with tempfile.TemporaryDirectory() as folder:
        signal = pathlib.Path(folder) / "signal.raw"
        signal.write_bytes(np.stack([voltage, current]).tobytes())
        for name in ["audio-flac/librispeech/1069-133699-0000.flac", "audio-mp3/librispeech-derived/1069-133699-0000.mp3"]:
            path = options.data / name
            times = ours(example, path, signal, options.rounds)
            samples, rate = soundfile.read(path, dtype="int16")
            seconds = len(samples) / rate
            decode = fastest(lambda path=path: soundfile.read(path, dtype="int16"), options.rounds)
            report(f"decode {path.suffix[1:]}, {seconds:.1f} s of {rate} Hz", times["decode"], {"soundfile (C)": decode})
            tasks = spectrogram_tasks(samples, rate)
            theirs = {title: fastest(task, options.rounds) for title, task in tasks.items()}
            report(f"log-mel spectrogram, {seconds:.1f} s of {rate} Hz", times["log_mel_spectrogram"], theirs, BAR)
        for power in ["reactive", "active"]:
            tasks = nilm_tasks(voltage, current, power == "reactive")
            theirs = {title: fastest(task, options.rounds) for title, task in tasks.items()}
            report(f"NILM features with {power} power, a window of {SECONDS} s", times[f"nilm-{power}"], theirs, BAR)


main()
