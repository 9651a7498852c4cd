"""The environments that peers are installed in.

PyTorch is large, and most peers need it; so one environment has it, with the shared decoders, and each peer has a thin
one laid on it: a path file makes the lower one's packages visible to Python and to pip, and what a peer wants in
another version goes into its own layer. So no peer can break another.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from common import Peer

#: What lies below the peers: PyTorch, and what the shared functions of `kernels.py` need.
TORCH = Peer(
    "torch",
    (),
    packages=("torch", "torchvision", "numpy", "pillow", "simplejpeg", "opencv-python-headless"),
    parent=None,
)

_STAMP = "forebay-bench-installed"


class InstallError(Exception):
    """A peer cannot be installed; the text says why, on one line."""


def python(folder: Path, name: str) -> Path:
    """The interpreter of an environment."""
    return folder / f"venv-{name}" / "bin" / "python"


def install(folder: Path, peer: Peer, offline: bool) -> None:
    """Makes the peer's environment, unless it is there already. Raises `InstallError`."""
    environment = folder / f"venv-{peer.name}"
    stamp = environment / _STAMP
    wanted = "\n".join((*peer.build_packages, *peer.packages))
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    if offline:
        raise InstallError("not there, and --offline was given")
    _check_system(peer)
    if not (environment / "bin" / "python").exists():
        _run([sys.executable, "-m", "venv", str(environment)])
    if peer.parent is not None:
        lower = _packages_folder(folder / f"venv-{peer.parent}")
        (_packages_folder(environment) / "lower-environment.pth").write_text(f"{lower}\n", encoding="utf-8")
    if peer.build_packages:
        pip_install(folder, peer.name, *peer.build_packages)
    if peer.packages:
        pip_install(folder, peer.name, *peer.pip_options, *peer.packages)
    stamp.write_text(wanted, encoding="utf-8")


def pip_install(folder: Path, name: str, *arguments: str) -> None:
    """Installs into the environment of this name. Raises `InstallError`."""
    _run([str(python(folder, name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments])


def _check_system(peer: Peer) -> None:
    if not peer.system_libraries:
        return
    if shutil.which("pkg-config") is None:
        raise InstallError(f"no pkg-config; {peer.hint}")
    missing = [name for name in peer.system_libraries if _fails(["pkg-config", "--exists", name])]
    if missing:
        raise InstallError(f"no {', '.join(missing)} on this system; {peer.hint}")


def _packages_folder(environment: Path) -> Path:
    return next((environment / "lib").glob("python3.*")) / "site-packages"


def _fails(command: list[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode != 0


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise InstallError(_reason(done.stderr))


def _reason(output: str) -> str:
    """The line of pip's output that says most."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("WARNING")]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it said nothing"])[0][:200]
