"""What people read (help, messages, docstrings, pages, results of benchmarks) has the field's words, and none that was given up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_names import DOUBLED, ROOT

#: Words of before, anywhere in a text: an image is no picture, a CPU is no processor, and what is kept after a step is its stage.
RETIRED = re.compile(rf"\b(?:pictures?|processors?|keep it as)\b|{DOUBLED}", re.IGNORECASE)
#: Names of others, which are not ours to choose; what is put into a text; and a key of profiles that earlier versions wrote.
ALLOWED = re.compile(r"\(R\)[^,|.]* Processor|post_processor|SentencePieceProcessor|\{\w*\}|^processor$")
#: A comment, or a string, of Rust. Characters are there so that a quotation mark among them begins no string.
RUST = re.compile(r"""//[^\n]*|'(?:\\.|[^'\\])'|(?:r(?P<hashes>#*)"(?P<raw>.*?)"(?P=hashes)|"(?P<plain>(?:\\.|[^"\\])*)")""", re.DOTALL)


def of_rust() -> Iterator[tuple[Path, str]]:
    """The strings of the rooms: messages, the program's tables, the pages of reports."""
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        if path.name != "tests.rs":
            code = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")[0]
            for found in RUST.finditer(code):
                yield path, found["raw"] or found["plain"] or ""


def of_python() -> Iterator[tuple[Path, str]]:
    """Messages and docstrings."""
    for path in sorted((ROOT / "python/forebay").rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield path, node.value


def of_pages() -> Iterator[tuple[Path, str]]:
    """The site (with the help of all commands, docs/cli.md), what is published with packages, and results of benchmarks; code aside."""
    folders = ["docs/**/*.md", "bench/**/*.md", "examples/*.md", "python/*.md", "crates/*/README.md", "*.md"]
    for path in sorted({path for pattern in folders for path in ROOT.glob(pattern)} - {ROOT / "CHANGELOG.md"}):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield path, re.sub(r"`[^`]*`", "", line)


@pytest.mark.parametrize("texts", [of_rust, of_python, of_pages])
def test_texts_have_the_fields_words(texts):
    found = list(texts())
    assert len(found) > 1000
    wrong = [f"{path.relative_to(ROOT)}: {text.strip()[:160]}" for path, text in found if RETIRED.search(ALLOWED.sub("", text))]
    assert not wrong, "\n".join(wrong)


def test_what_is_looked_for_is_found():
    code = "let one = \"no picture\"; // a picture\nlet two = r#\"cancelled \"work\"\"#; let three = '\"'; let four = \"Cancelling\";"
    texts = [found["raw"] or found["plain"] or "" for found in RUST.finditer(code)]
    assert [text for text in texts if RETIRED.search(text)] == ["no picture", 'cancelled "work"', "Cancelling"]
    assert not RETIRED.search(ALLOWED.sub("", "Intel(R) Xeon(R) Processor, 2 cores"))
