"""Writes `pcm.tsv`: what ffmpeg decodes of the FLAC and MP3 files of the shared test data.

    python pcm.py <folder of the test data> > pcm.tsv

Needs ffmpeg and NumPy. One line per file: path, rate, channels, samples per channel, hash of all samples (of FLAC, which is
exact), and 64 samples (of MP3, where two decoders may round differently), evenly spread. The first line says which ffmpeg.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np

PROBES = 64
BASE = 0x100000001B3


def polynomial_hash(samples):
    """Horner's rule over the samples as unsigned 16-bit numbers, each plus one, modulo 2^64."""
    with np.errstate(over="ignore"):
        powers = np.ones(len(samples), dtype=np.uint64)
        powers[1:] = np.cumprod(np.full(len(samples) - 1, BASE, dtype=np.uint64))
        terms = (samples.view(np.uint16).astype(np.uint64) + np.uint64(1)) * powers[::-1]
        return int(terms.sum(dtype=np.uint64))


def describe(path):
    probe = ["ffprobe", "-v", "error", "-select_streams", "a:0", "-show_entries", "stream=sample_rate,channels", "-of", "json"]
    streams = json.loads(subprocess.run([*probe, path], capture_output=True).stdout).get("streams")
    command = ["ffmpeg", "-v", "error", "-i", path, "-map", "a:0", "-f", "s16le", "-c:a", "pcm_s16le", "-"]
    decoded = subprocess.run(command, capture_output=True)
    if not streams or decoded.returncode or decoded.stderr or not decoded.stdout:
        return None
    samples = np.frombuffer(decoded.stdout, dtype="<i2")
    rate, channels = int(streams[0]["sample_rate"]), int(streams[0]["channels"])
    if str(path).endswith(".flac"):
        what = f"{polynomial_hash(samples):016x}"
    else:
        places = np.arange(PROBES) * len(samples) // PROBES
        what = ",".join(str(sample) for sample in samples[places])
    return rate, channels, len(samples) // channels, what


def main():
    root = pathlib.Path(sys.argv[1])
    version = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=True).stdout.split()[2]
    print(f"# ffmpeg {version}")
    for folder in ["audio-flac", "audio-mp3"]:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".flac", ".mp3", ".bit"):
                found = describe(path)
                line = ["refused or complained"] if found is None else [str(part) for part in found]
                print("\t".join([str(path.relative_to(root)), *line]))


main()
