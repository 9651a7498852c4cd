"""The exceptions. Each says what went wrong, where, and (after `hint:`) what to do about it."""

from __future__ import annotations

import os
from typing import Any

__all__ = [
    "AccessError",
    "DataError",
    "Error",
    "InternalError",
    "LimitError",
    "MissingFileError",
    "PipelineError",
    "StorageError",
    "UnsupportedError",
    "UsageError",
]


class Error(Exception):
    """Anything that Forebay raises. The attributes give the location, as far as it is known; the others are None."""

    #: The file that is at fault.
    path: str | None
    #: The shard of a data set, and the number of the record in it.
    shard: str | None
    record: int | None
    #: The byte at which it begins.
    offset: int | None
    #: The sample, and the step that failed on it.
    key: str | None
    step: str | None

    def __init__(
        self,
        message: str,
        *,
        path: str | os.PathLike[str] | None = None,
        shard: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        key: str | None = None,
        step: str | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(message)
        self.path = None if path is None else os.fspath(path)
        self.shard = shard
        self.record = record
        self.offset = offset
        self.key = key
        self.step = step
        self._set_system_error(errno)

    def _set_system_error(self, errno: int | None) -> None:
        """What the operating system said, for those that are its errors."""

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the message alone, and lose the location between processes.
        return _restore, (type(self), self.args[0], dict(self.__dict__), getattr(self, "errno", None))


def _restore(cls: type[Error], message: str, attributes: dict[str, Any], errno: int | None) -> Error:
    error = cls(message, path=attributes.get("path"), errno=errno)
    error.__dict__.update(attributes)
    return error


class DataError(Error):
    """A file or a record is damaged, or has an unexpected format."""


class UsageError(Error, ValueError):
    """An argument is invalid, or arguments contradict each other."""


class PipelineError(UsageError):
    """A pipeline is invalid: steps do not fit, or a parameter or name is wrong."""


class UnsupportedError(Error):
    """The data may be valid, but Forebay does not support it."""


class LimitError(Error):
    """A limit was exceeded, or no strategy meets the limits."""


class StorageError(Error, OSError):
    """The operating system or the device reported an error."""

    def _set_system_error(self, errno: int | None) -> None:
        self.errno = errno
        self.filename = self.path
        self.strerror = self.args[0]


class MissingFileError(StorageError, FileNotFoundError):
    """A file or folder does not exist."""


class AccessError(StorageError, PermissionError):
    """Permission to read or write a file or folder was denied."""


class InternalError(Error, RuntimeError):
    """A bug in Forebay."""
