"""The `forebay` command, as the wheel installs it."""

from __future__ import annotations

import sys

from . import _native


def main() -> int:
    """Runs the command line; its exit code."""
    return _native.main(sys.argv)


if __name__ == "__main__":
    sys.exit(main())
