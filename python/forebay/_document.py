"""What profiles and plans have in common: they are JSON documents, which the `forebay` program reads and writes too."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ._errors import DataError, MissingFileError

__all__ = ["Document"]


class Document:
    """What was measured or chosen: a JSON document, with its content as attributes of the subclass."""

    _what = "document"

    def __init__(self, text: str, functions: Mapping[str, Callable[..., Any]] | None = None) -> None:
        self._text = text
        #: The Python functions that steps name, which no file can hold.
        self._functions = dict(functions or {})
        self._content: dict[str, Any] = json.loads(text)

    @property
    def content(self) -> dict[str, Any]:
        """Everything, with the keys of its JSON file (docs/json.md)."""
        return self._content

    def to_json(self) -> str:
        """The text of its file."""
        return self._text

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes its file, which the `forebay` program reads too."""
        Path(path).write_text(self._text, encoding="utf-8")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._content == other._content

    def __hash__(self) -> int:
        return hash(self._text)

    @classmethod
    def _read(cls, path: str | os.PathLike[str]) -> str:
        try:
            return Path(path).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            message = f"cannot read the {cls._what} `{os.fspath(path)}`: it does not exist\nhint: check the path"
            raise MissingFileError(message, path=path, errno=error.errno) from None
        except UnicodeDecodeError:
            message = f"cannot read the {cls._what} `{os.fspath(path)}`: it is not text\nhint: check the path"
            raise DataError(message, path=path) from None
