"""Every public name is spelled as in America, and none is one that was given up."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forebay
import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Consonants that only Britain doubles.
DOUBLED = r"(?:cancel|channel|fuel|label|level|model|signal|total|travel|tunnel)l(?:ed|er|ing)(?![a-z])"
BRITISH = re.compile(
    r"colour|grey|centre|behaviour|neighbour|licence|catalogue|artefact|favour|"  # typos: on purpose
    rf"(?:al|el|im|an|or|er|en|it|gn|ar|yt)is(?:e|ed|er|ing|ation)\b|{DOUBLED}"
)
#: Words of before, whole parts of a name: the field has others.
RETIRED = {
    *("t4", "packing", "packed", "beside", "ready", "deviation", "colour", "tokeniser", "stretch", "whole"),  # typos: on purpose
    *("supply", "schedule", "staging", "assembly", "draw", "remake", "produce", "expand", "form"),
    *("kept", "state", "area", "sound", "sounds", "picture", "pictures", "place", "places", "room"),
    *("processor", "processors"),
}
#: Whole names of before. `work_dir` has its folder's kind, as `cache_dir` has, and balanced classes are one of `weights`. `skipped` is a count,
#: and `skipped_samples` the list; `prep` is in every name, and "preparation" in sentences.
RETIRED_WHOLE = {
    *("work", "balanced", "skipped_list", "skipped_images", "preparation", "notice", "gives", "rate_hz", "keeps_files"),
    *("megabytes_per_second", "memory_megabytes_per_second"),
}
#: A limit is `max_pixels`, as `max_length` is one; `f_min` and `f_max` are torchaudio's.
LIMIT_LAST = re.compile(r"(?!f_)\w+_(?:max|min)$")
#: Names that have such a word and are right, because it is the field's own there.
ALLOWED = {
    # Packing is what language-model trainers do to token sequences; block compression was called so here once.
    *("packing_strategy", "packed"),
    # PyTorch's checkpoints; how far a sample has come, which was called so, is its stage.
    *("state", "state_dict", "load_state_dict"),
    # How OpenCV and TensorFlow call this interpolation; the share of an image that a crop takes, which was called so, is `scale`.
    "area",
    # torchvision's argument of `RandomRotation`; a flat map, which was called so, is none of its kind.
    "expand",
    # audiomentations' argument of `AddBackgroundNoise`.
    "sounds_path",
}


def of_python() -> Iterator[str]:
    for name in forebay.__all__:
        yield name
        found = getattr(forebay, name)
        members = [found] + ([member for _, member in inspect.getmembers(found)] if inspect.isclass(found) else [])
        for member in members:
            if callable(member) and not str(getattr(member, "__name__", "_")).startswith("_"):
                yield member.__name__
                with contextlib.suppress(ValueError):  # of native ones
                    yield from inspect.signature(member).parameters
        if inspect.isclass(found):
            yield from (member for member in vars(found) if not member.startswith("_"))


def of_pipelines() -> Iterator[str]:
    for preset in forebay.Pipeline.preset_names():
        text = forebay.Pipeline.preset(preset).to_toml()
        yield preset
        yield from re.findall(r"^([\w-]+) =", text, re.MULTILINE)
        yield from re.findall(r'^op = "([\w-]+)"', text, re.MULTILINE)
    # A test of the pipeline's room compares this page with what is accepted.
    yield from re.findall(r"`([a-z_-]+)`", (ROOT / "docs/steps.md").read_text(encoding="utf-8"))


def printed(*arguments: str, folder: Path | None = None) -> str:
    command = [sys.executable, "-m", "forebay._command", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


def commands_in(text: str) -> set[str]:
    """The commands that a help text lists."""
    listed = re.search(r"^Commands:\n(.*?)\n\n", text, re.DOTALL | re.MULTILINE)
    return set(re.findall(r"^  ([a-z][a-z-]*) ", listed[1], re.MULTILINE)) - {"help"} if listed else set()


def of_the_command() -> Iterator[str]:
    def names_of(*command: str) -> Iterator[str]:
        text = printed(*command, "--help")
        yield from re.findall(r"--([a-z][a-z-]+)", text)
        for below in commands_in(text):
            yield below
            yield from names_of(*command, below)

    commands = commands_in(printed("--help"))
    assert {"profile", "plan", "build", "load", "completions"} <= commands
    assert {"caching", "add-step"} <= commands_in(printed("experiment", "--help"))
    yield from names_of()


def of_json() -> Iterator[str]:
    yield from re.findall(r"`([a-z][a-z0-9_]+)`", (ROOT / "docs/json.md").read_text(encoding="utf-8"))


def keys(value: Any) -> Iterator[str]:
    """The keys of a JSON document, at every depth."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    for part in value if isinstance(value, list) else []:
        yield from keys(part)


def of_printed_json() -> Iterator[str]:
    """What the commands print of six images."""
    runs = [
        "demo --data-only --samples 6 --folder demo",
        "analyze demo/photos",
        "profile cv --data demo/photos --fast --seconds 0",
        "plan profile.json",
        "mix profile.json --predict",
        "build cv --data demo/photos --strategy resized -o dataset",
        "load dataset",
        "inspect dataset",
        "inspect demo/photos",
        "inspect profile.json",
        "inspect imagenet",
        "convert demo/photos l3 --mode fast",
        "recompress demo/photos smaller --quality 50 --metrics",
        "export dataset tars",
        "diagnose demo/photos cv --trainer 1000 --seconds 0.1",
        "advise demo/photos cv --trainer 1000",
        "probe demo --threads 1 --seconds 0.02",
        "pipelines",
        "report profile.json",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            yield from keys(json.loads(printed(*run.split(), "--json", folder=Path(folder))))


@pytest.mark.parametrize("names", [of_python, of_pipelines, of_the_command, of_json, of_printed_json])
def test_names_are_those_of_the_field(names):
    found = sorted({name for name in names() if not name.startswith("_")})
    assert len(found) > 30
    assert [name for name in found if BRITISH.search(name.lower())] == []
    assert [name for name in found if name not in ALLOWED and RETIRED & set(re.split(r"[_-]", name.lower()))] == []
    assert RETIRED_WHOLE.isdisjoint(found)
    assert [name for name in found if LIMIT_LAST.match(name)] == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("ToTensor", "not needed"),
        ("CenterCrop", "`center_crop`"),
        ("RandomHorizontalFlip", "`random_horizontal_flip`"),
        ("horizontal_flip", "`random_horizontal_flip`"),
        ("normalise", "`normalize`"),
        ("resise", "`resize`"),
    ],
)
def test_a_name_of_elsewhere_is_answered_with_ours(name, hint):
    with pytest.raises(AttributeError, match=f"has no step `{name}`\nhint: .*{hint}"):
        getattr(forebay.Pipeline.files().decode(), name)
    with pytest.raises(forebay.PipelineError, match=hint):
        forebay.Pipeline.files().decode().step(name)


def test_each_step_is_a_method_or_says_how_it_is_added():
    headings = re.findall(r"^### (.+)$", (ROOT / "docs/steps.md").read_text(encoding="utf-8"), re.MULTILINE)
    steps = [op for heading in headings for op in re.findall(r"`([a-z_]+)`", heading)]
    assert {"spec_augment", "decode_npy", "tokenize"} < set(steps)
    without = [op for op in steps if not hasattr(forebay.Pipeline, op)]
    assert "decode_npy" in without and "spec_augment" not in without
    for op in without:
        with pytest.raises(AttributeError, match=rf'has no step `{op}`\nhint: .*`\.step\("{op}", \.\.\.\)`'):
            getattr(forebay.Pipeline.files(), op)


@pytest.mark.parametrize("module", ["_audio", "_text"])
def test_methods_have_the_parameters_of_their_steps(module):
    (steps,) = (getattr(sys.modules[f"forebay.{module}"], name) for name in sys.modules[f"forebay.{module}"].__all__)
    methods = {name: method for name, method in vars(steps).items() if not name.startswith("_") and name != "step"}
    assert len(methods) > 4
    for op, method in methods.items():
        with pytest.raises(forebay.PipelineError, match="unknown field `nonsense`") as refused:
            forebay.Pipeline.files().step(op, nonsense=1)
        expected = set(re.findall(r"`(\w+)`", str(refused.value).split("expected", 1)[1].split("\n")[0]))
        assert set(inspect.signature(method).parameters) - {"self", "options"} == expected, op


def test_methods_of_audio_and_text_make_their_steps():
    audio = (
        forebay.Pipeline.files("*.flac", label=None, field="audio")
        .decode_audio(sample_rate=16_000)
        .speed_perturbation((0.9, 1.1))
        .random_gain(-6, 6)
        .add_gaussian_snr(15, 40)
        .random_time_crop(16_000)
        .log_mel_spectrogram(n_mels=40)
        .spec_augment(2, 20, 2, 15)
        .mfcc(13)
    )
    assert audio.output == {"audio": "float32[99, 13]"}
    text = forebay.Pipeline.files("*.html", label=None, field="text").extract_text().tokenize(max_length=8, pad_to=8)
    masked = text.mask_tokens(1, 256, special_token_ids=range(2))
    assert masked.output == {"text": "int32[8]", "labels": "int32[8]"}
    assert text.embed(num_embeddings=256, embedding_dim=4).output == {"text": "float32[8, 4]"}
    assert text.tokenize.__doc__ and text == forebay.Pipeline.files("*.html", label=None, field="text").step("extract_text").step(
        "tokenize", tokenizer="bytes", max_length=8, pad_to=8
    )
    some = forebay.Steps().random_gain(p=1.0).add_gaussian_snr(p=1.0)
    assert forebay.Pipeline.files("*.flac", label=None, field="audio").decode_audio().random_apply(some).output == {"audio": "int16[?]"}
