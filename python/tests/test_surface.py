"""The stubs are true, and the manual's examples run."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import forebay
import pytest
from conftest import make_photos

ROOT = Path(__file__).parents[2]


def test_the_stubs_are_true():
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy.stubtest", "forebay._native", "--ignore-disjoint-bases"]
    # Away from the checkout, so that what is installed is looked at.
    found = subprocess.run(command, capture_output=True, text=True, cwd=Path(sys.prefix))
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_package_is_installed_and_whole():
    assert ROOT not in Path(forebay.__file__).parents or ".venv" in forebay.__file__
    assert (Path(forebay.__file__).parent / "py.typed").exists()
    assert sorted(forebay.__all__) == forebay.__all__
    for name in forebay.__all__:
        value = getattr(forebay, name)
        assert name == "__version__" or value.__doc__


def test_importing_it_imports_no_framework():
    script = "import sys, forebay; print([name for name in ('torch', 'jax', 'pandas', 'tqdm') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_manuals_examples_run(tmp_path, monkeypatch, capsys, short_runs):
    make_photos(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    examples = [(match.start(), match[1]) for match in re.finditer(r"```python\n(.*?)```", text, re.DOTALL)]
    assert len(examples) == text.count("```python") >= 12
    names: dict[str, object] = {}
    for start, example in examples:
        line = text.count("\n", 0, start) + 1
        exec(compile("\n" * line + example, "docs/python.md", "exec"), names)
    assert "resized" in capsys.readouterr().out


@pytest.mark.parametrize("documented", [forebay, forebay.Pipeline])
def test_the_docstrings_examples_run(documented, tmp_path, monkeypatch, short_runs):
    make_photos(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(documented)
    (example,) = re.findall(r"::\n\n((?: {4}.*\n|\n)+)", text + "\n")
    exec(compile(textwrap.dedent(example), documented.__name__, "exec"), {"forebay": forebay})
