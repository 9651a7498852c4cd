"""The site that mdBook makes of docs/: pages link to what there is, their commands and figures are true, and their examples run."""

from __future__ import annotations

import functools
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import forebay
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Pages whose Python blocks are run: each page in one namespace, in an empty folder.
PAGES = sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("how-to/*.md")])
#: Pages whose commands are looked at.
COMMANDED = [*PAGES, DOCS / "introduction.md", DOCS / "benchmarks.md"]
#: What a page says before a block that is not run.
NOT_RUN = "Not run by our tests: "


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(DOCS)) for page in pages]


def fences(text: str) -> Iterator[tuple[int, str, str]]:
    """The fenced blocks of a page: the line that each begins on, what it is marked as, and what is in it."""
    for found in re.finditer(r"^```(\S*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start()) + 1, found[1], found[2]


def run_examples(page: Path) -> int:
    """Runs the blocks of a page that are marked `python`, one after another in one namespace; how many there are."""
    examples = [(line, block) for line, mark, block in fences(page.read_text(encoding="utf-8")) if mark == "python"]
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, block in examples:
        # Errors name the line of the page.
        exec(compile("\n" * line + block, str(page), "exec"), namespace)
    return len(examples)


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_a_pages_examples_run(page, tmp_path, monkeypatch):
    text = page.read_text(encoding="utf-8")
    if "matplotlib" in text:
        pytest.importorskip("matplotlib").use("agg")
    if "import webdataset" in text:
        pytest.importorskip("webdataset")
    if "import pyarrow" in text:
        pytest.importorskip("pyarrow")
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    # To see that it runs, each sample need be measured once only, and not for seconds.
    monkeypatch.setattr(forebay, "profile", functools.partial(forebay.profile, seconds=0))
    monkeypatch.chdir(tmp_path)
    assert run_examples(page) >= 1
    assert {mark for _, mark, _ in fences(text)} <= {"python", "python,ignore", "console", "text", "toml"}


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_what_is_not_run_says_why(page):
    section = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert all(NOT_RUN in part for part in section if "```python,ignore" in part)


# Links.


def test_every_page_is_in_the_summary_once():
    linked = re.findall(r"\]\((.*?)\)", (DOCS / "SUMMARY.md").read_text(encoding="utf-8"))
    assert sorted(linked) == sorted(name for name in names(list(DOCS.rglob("*.md"))) if name != "SUMMARY.md")


def anchors(page: Path) -> set[str]:
    """What a link to a heading of the page may end in."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_pages_of_the_site():
    broken = []
    for page in DOCS.rglob("*.md"):
        text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.is_file() or DOCS not in target.parents or (anchor and anchor not in anchors(target)):
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert not broken


def test_the_book_is_of_these_pages_and_fetches_nothing():
    book = tomllib.loads((ROOT / "book.toml").read_text(encoding="utf-8"))
    assert book["book"]["src"] == "docs" and book["build"]["build-dir"] == "target/book"
    html = book["output"]["html"]
    assert not html["mathjax-support"] and not html["playground"]["runnable"]


# Commands.


def forebay_program() -> Path:
    found = [path for path in (ROOT / "target/debug/forebay", ROOT / "target/release/forebay") if path.is_file()]
    if not found:
        pytest.skip("there is no target/debug/forebay or target/release/forebay to ask for its flags")
    return max(found, key=lambda path: path.stat().st_mtime)


@functools.cache
def flags_of(program: Path, *command: str) -> set[str] | None:
    """The flags of a command, by its help; None where there is no such command."""
    found = subprocess.run([program, *command, "--help"], capture_output=True, text=True)
    options, _, _ = found.stdout.partition("\nExamples:")
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", options)) if found.returncode == 0 else None


def commands_of(text: str) -> Iterator[str]:
    """What is to be typed: lines of fenced and indented blocks, and code within sentences."""
    text = re.sub(r"^```python.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE).replace("\\\n", " ")
    yield from re.findall(r"^(?: {4}|\$ )(forebay .*)$", text, re.MULTILINE)
    yield from re.findall(r"`(forebay [^`\n]*)`", text)


@pytest.mark.parametrize("page", COMMANDED, ids=names(COMMANDED))
def test_commands_and_flags_are_there(page):
    program = forebay_program()
    wrong = []
    for line in commands_of(page.read_text(encoding="utf-8")):
        command = line.split()[1:]
        # Only experiments have commands of their own.
        known = flags_of(program, *command[: 2 if command[0] == "experiment" else 1])
        used = re.findall(r"(?<=\s)--?[a-z][a-z-]*", line)
        if known is None or not known.issuperset(used):
            wrong.append(line)
    assert not wrong


# Figures.


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def is_part_of(some: list[str], row: list[str]) -> bool:
    """Whether `some` are cells of the row, in its order."""
    rest = iter(row)
    return all(cell in rest for cell in some)


def test_the_benchmarks_are_those_of_the_results():
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^<!-- from (\S+) -->\n(.*?)(?:\n\n|^```$)", text, re.DOTALL | re.MULTILINE)
    assert len(quoted) >= 5
    gone = []
    for path, block in quoted:
        results = (ROOT / path).read_text(encoding="utf-8").splitlines()
        lines = block.splitlines()
        if lines[0].startswith("|"):
            rows = [cells(row) for row in results]
            gone += [f"{path}: {line}" for line in lines[2:] if not any(is_part_of(cells(line), row) for row in rows)]
        else:
            gone += [f"{path}: {line}" for line in lines[1:] if line not in results]
    assert not gone, "measured again? then these rows of docs/benchmarks.md are old"
