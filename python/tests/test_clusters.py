"""The examples of `examples/clusters`, each as a user would start it, where its packages are installed. `make test-remote` installs Ray, and fails without it;
PyTorch and Lightning are too heavy for that, so that it only says which examples were skipped and what to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "clusters"
REQUIRED = os.environ.get("FOREBAY_REMOTE") == "required"


#: What to install for the examples that `make test-remote` installs nothing for.
INSTALL = {
    "torch": "pip install torch --index-url https://download.pytorch.org/whl/cpu",
    "lightning": "pip install torch lightning --extra-index-url https://download.pytorch.org/whl/cpu",
}


def needs(module: str) -> None:
    # In a process of its own: a package may be there, but not all that a part of it needs.
    imported = subprocess.run([sys.executable, "-W", "ignore", "-c", f"import {module}"], capture_output=True, text=True)
    if imported.returncode != 0:
        why = f"{module} cannot be imported: {imported.stderr.strip().splitlines()[-1]}"
        if module in INSTALL:
            pytest.skip(f"{why}; `make test-remote` does not install it either: `{INSTALL[module]}`")
        if REQUIRED:
            pytest.fail(f"{why}, and FOREBAY_REMOTE=required")
        pytest.skip(f"{why}; `make test-remote` installs it")


def run(folder: Path, *arguments: str, **environment: str) -> str:
    settings = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", **environment}
    ran = subprocess.run([sys.executable, *arguments], cwd=folder, env=settings, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_torchrun_goes_on_with_another_number_of_processes(tmp_path):
    needs("torch")
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node"]
    script = str(FOLDER / "torchrun_training.py")
    assert "rank 1 of 2 stops after 3 steps" in run(tmp_path, *torchrun, "2", script, STOP_AFTER="3")
    assert "the epoch is over" in run(tmp_path, *torchrun, "1", script)
    keys = [key for path in tmp_path.glob("seen-*.txt") for key in path.read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 40


def test_lightning_has_the_position_in_its_checkpoints(tmp_path):
    needs("lightning")
    assert "each sample once in each" in run(tmp_path, str(FOLDER / "lightning_training.py"))


@pytest.mark.xdist_group("ray")
def test_ray_train_loses_nothing_with_a_worker(tmp_path):
    needs("ray.train")
    assert "each once, though one of them failed" in run(tmp_path, str(FOLDER / "ray_train.py"))
