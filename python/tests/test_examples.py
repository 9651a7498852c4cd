"""The examples run, each in a folder of its own."""

from __future__ import annotations

import importlib.util
import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out.strip()
    assert printed
    if path.stem == "train_classifier":
        torchvision = importlib.util.find_spec("torchvision") is not None
        assert f"reference: {'torchvision' if torchvision else 'Pillow'}" in printed, "it says what it was compared with"


def test_the_page_lists_them_all() -> None:
    listed = re.findall(r"^\| `(\w+\.py)`", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) == 18
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("*.py"))
