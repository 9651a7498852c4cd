"""What a run found, as tables, and whether Forebay keeps to its bars."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from common import TASKS
from measure import OTHERS_CORES_MAX
from pages import processor
from rows import Summary

#: How far pixels may be from torchvision's, in percent of the range of values.
DIFFERENCE_PERCENT_MAX = 1.0

NOT_IDENTICAL = """\
- **Resize filter.** Forebay, Pillow, torchvision (`pil`, `tvio`) and DALI antialias; the `fast` functions are
  OpenCV's bilinear filter without antialiasing, as are kornia-rs, tf.data unless its row says `antialias`, and DALI
  where its row says `no antialias`. FFCV resizes with OpenCV's area filter. Antialiasing costs more.
- **Source.** FFCV `jpg` reads JPEGs that it encoded again; the `raw` rows read pixels that were decoded before, of
  about ten times the size. WebDataset, MosaicML Streaming, LitData and HF datasets read shards that hold the same
  bytes as the files; the others, Forebay among them, read the files.
- **Start.** Workers and threads are kept from pass to pass where the peer can do so. SPDL, Grain and Ray Data build
  their pipeline anew for each pass, and Forebay and tf.data start their threads anew, so that their start is in their
  figure (Ray's costs most).
- **Ends of passes.** DALI without the torch iterator gives full batches only, across the ends of passes.
- **Memory order.** Batches are contiguous float32 CHW, except in the rows `channels last in memory`, which save FFCV
  a copy.
- **Decoders alone** have the bytes in memory, and drop every image at once. Loaders (Forebay's, DALI's) read files
  and hand batches over. Decoders are used with their own defaults unless the row says otherwise; a faster DCT or
  upsampling changes pixels slightly, which shows in the difference.
- `fast` = simplejpeg (accurate DCT) + OpenCV; `tvio` = torchvision.io and transforms on tensors; `pil`
  = Pillow and torchvision's transforms.
- No consumer is attached: this is the speed of loaders alone."""

METHOD = """\
Every configuration runs in a process of its own, bound to two cores, with two threads or worker processes, page
cache warm: one pass to warm up, then whole passes for at least the time given. Configurations take turns within each
round; figures are medians over the rounds with their range. CPU time is user and system time of the process and of
everything that it started, living worker processes included. A round is *disturbed* if others used more than {others}
of a core meanwhile (what the hypervisor took away included); disturbed rounds count only where a row has no other,
and such rows are marked `disturbed`.

`difference` is the mean absolute difference of pixels, in percent of the range of values, to torchvision's (full
work: resized to 256 by the shorter side, antialiased, center crop 224, normalized: what a peer does instead of its
random crop) or to Pillow's (decoding). FFCV can only cut before it resizes, and is compared with torchvision doing
so. Forebay's random crop itself is compared as well, made to take the whole image. `x Forebay` is the row's figure
relative to the best of Forebay's in the same run."""


def without_paths(arguments: list[str]) -> Iterable[str]:
    """The arguments as they were given, without this machine's folders."""
    return (Path(argument).name if "/" in argument else argument for argument in arguments)


@dataclass(frozen=True)
class Bar:
    """Something that Forebay is to reach."""

    what: str
    wanted: str
    found: str
    verdict: str


@dataclass(frozen=True)
class Report:
    """Everything that a run found."""

    rows: list[Summary]
    versions: dict[str, str]
    data: dict[str, Any]
    command: str

    # The bars.

    def bars(self) -> list[Bar]:
        """Each bar by both measures: per second, and per second of processor time."""
        measured = []
        for unit, value in _UNITS.items():
            full = self._best("full", value, lambda row: row.name == "Forebay")
            decoding = self._best("decode", value, _is_ours)
            png = self._named("png", "Forebay, loader")
            l3 = self._best("l3", value, lambda row: row.name == "Forebay, L3 fast")
            measured += [
                self._ratio(f"full work, {unit}", 2.0, full, self._best("full", value, _is_theirs), value),
                *(
                    self._ratio(f"full work against {name}, {unit}", 1.0, full, self._named("raw", name), value)
                    for name in _FFCV_RAW
                ),
                self._ratio(f"JPEG decoding, {unit}", 1.2, decoding, self._best("decode", value, _is_theirs), value),
                self._ratio(f"PNG decoding against kornia-rs, {unit}", 1.4, png, self._named("png", "kornia-rs"), value),
                self._ratio(f"L3 fast against Pillow's PNG, {unit}", 40.0, l3, self._named("png", "Pillow"), value),
                self._ratio(f"L3 fast against DALI's PNG, {unit}", 10.0, l3, self._named("png", "DALI"), value),
            ]
        return [*measured, self._handover(), self._pixels("full"), self._pixels("crop")]

    def _best(self, task: str, value: _Value, wanted: Callable[[Summary], bool]) -> Summary | None:
        rows = [row for row in self.rows if row.task == task and wanted(row) and row.images_per_second is not None]
        return max(rows, key=value, default=None)

    def _named(self, task: str, name: str) -> Summary | None:
        return next((row for row in self.rows if (row.task, row.name) == (task, name) and row.images_per_second), None)

    def _ratio(self, what: str, wanted: float, ours: Summary | None, theirs: Summary | None, value: _Value) -> Bar:
        if ours is None or theirs is None:
            return Bar(what, f"at least {wanted:g} times", "", "not measured")
        ratio = value(ours) / value(theirs)
        found = f"{ratio:.2f} times ({ours.name} {value(ours):.0f}, {theirs.name} {value(theirs):.0f})"
        return Bar(what, f"at least {wanted:g} times", found, _verdict(ratio >= wanted, ours, theirs))

    def _handover(self) -> Bar:
        what, wanted = "batches given to PyTorch", "under 1 % of the time, all in the loader's memory"
        row = next((row for row in self.rows if row.handover_percent is not None), None)
        if row is None or row.handover_percent is None:
            return Bar(what, wanted, "", "not measured")
        kept = row.handover_percent.median < 1.0 and row.batches_shared == row.batches > 0
        found = f"{row.handover_percent.median:.3f} %; {row.batches_shared} of {row.batches} batches share its memory"
        return Bar(what, wanted, found, _verdict(kept, row))

    def _pixels(self, task: str) -> Bar:
        what = "Forebay's pixels, full work" if task == "full" else "Forebay's pixels, random crop of the whole image"
        wanted = f"within {DIFFERENCE_PERCENT_MAX:g} % of torchvision's"
        row = next((row for row in self.rows if row.task == task and row.name == "Forebay"), None)
        if row is None or row.difference_percent is None:
            return Bar(what, wanted, "", "not measured")
        kept = row.difference_percent <= DIFFERENCE_PERCENT_MAX
        return Bar(what, wanted, f"{row.difference_percent:.3f} %", "pass" if kept else "missed")

    # Ways to print it.

    def to_json(self) -> str:
        return json.dumps(
            {
                "command": self.command,
                "date": _date(),
                "machine": _machine(),
                "versions": self.versions,
                "data": self.data,
                "rows": [asdict(row) for row in self.rows],
                "bars": [asdict(bar) for bar in self.bars()],
            },
            indent=2,
        )

    def to_markdown(self) -> str:
        sections = [
            "# Forebay compared with other loaders",
            f"Regenerate with `make bench-peers`. These figures: {_date()}, by `{self.command}`, on {_machine()}.",
            "Versions: " + ", ".join(f"{name} {version}" for name, version in self.versions.items()) + ".",
            self._data(),
            METHOD.format(others=OTHERS_CORES_MAX),
            "## Bars",
            _table(
                ["bar", "wanted", "found", ""], [[bar.what, bar.wanted, bar.found, bar.verdict] for bar in self.bars()]
            ),
        ]
        for task, what in TASKS.items():
            rows = [row for row in self.rows if row.task == task]
            if rows:
                sections += [f"## {what}", self._task(task, rows)]
        return "\n\n".join([*sections, "## Not identical between rows", NOT_IDENTICAL]) + "\n"

    def _data(self) -> str:
        data = self.data
        source = (
            f"crops of {data['small_photographs']} and {data['large_photographs']} photographs"
            if data["shared"]
            else "crops of images that `forebay demo` makes, for want of photographs"
        )
        text = (
            f"Data, {source}: {data['jpegs']} JPEGs 500x375 (every tenth upright), quality 90, 4:2:0, mild noise, mean "
            f"{data['jpeg_bytes'] / 1000:.1f} KB; {data['pngs']} PNGs 2048x1024, zlib level 6, mean "
            f"{data['png_bytes'] / 1e6:.2f} MB"
        )
        if "l3_fast_bytes" in data:
            text += f" (as L3 fast {data['l3_fast_bytes'] / 1e6:.2f} MB, dense {data['l3_dense_bytes'] / 1e6:.2f} MB)"
        return text + "."

    def _task(self, task: str, rows: list[Summary]) -> str:
        if task == "handover":
            return _table(
                ["configuration", "share of the time", "range", "per batch", "batches in the loader's memory", ""],
                map(_handover_cells, rows),
            )
        if task == "crop":
            return _table(["configuration", "difference"], [[row.name, row.problem or _percent(row)] for row in rows])
        ours = self._best("png" if task == "l3" else task, _per_second, _is_ours)
        ours_by_cpu = self._best("png" if task == "l3" else task, _per_cpu_second, _is_ours)
        ranked = sorted(rows, key=lambda row: _per_second(row) if row.images_per_second else 0.0, reverse=True)
        heading = [
            "configuration",
            "images/s",
            "range",
            "x Forebay",
            "CPU ms/image",
            "images per CPU-second",
            "x Forebay",
            "cores",
            "difference",
            "",
        ]
        if task == "l3":
            heading = [cell.replace("x Forebay", "x Forebay's PNG") for cell in heading]
        return _table(heading, [_cells(row, ours, ours_by_cpu) for row in ranked])


_Value = Callable[[Summary], float]


def _per_second(row: Summary) -> float:
    assert row.images_per_second is not None
    return row.images_per_second.median


def _per_cpu_second(row: Summary) -> float:
    assert row.images_per_cpu_second is not None
    return row.images_per_cpu_second.median


#: With pixels that were decoded before; the second does less than the full work.
_FFCV_RAW = ("FFCV raw", "FFCV raw, channels last in memory")

_UNITS: dict[str, _Value] = {"images per CPU-second": _per_cpu_second, "images/s": _per_second}


def _is_ours(row: Summary) -> bool:
    return row.peer == "forebay"


def _is_theirs(row: Summary) -> bool:
    return row.peer != "forebay"


def _verdict(kept: bool, *rows: Summary) -> str:
    if any(row.disturbed for row in rows):
        return f"{'pass' if kept else 'missed'}, disturbed"
    return "pass" if kept else "missed"


def _cells(row: Summary, ours: Summary | None, ours_by_cpu: Summary | None) -> list[str]:
    if row.images_per_second is None or row.cpu_milliseconds_per_image is None or row.cores is None:
        return [row.name, row.problem or "not measured", *[""] * 6, _percent(row), ""]
    return [
        row.name,
        f"{row.images_per_second.median:.1f}",
        f"{row.images_per_second.least:.1f}–{row.images_per_second.most:.1f}",
        f"{_per_second(row) / _per_second(ours):.2f}" if ours else "",
        f"{row.cpu_milliseconds_per_image.median:.3f}",
        f"{_per_cpu_second(row):.1f}",
        f"{_per_cpu_second(row) / _per_cpu_second(ours_by_cpu):.2f}" if ours_by_cpu else "",
        f"{row.cores:.2f}",
        _percent(row),
        _remark(row),
    ]


def _handover_cells(row: Summary) -> list[str]:
    if row.handover_percent is None:
        return [row.name, row.problem or "not measured", *[""] * 4]
    share = row.handover_percent
    return [
        row.name,
        f"{share.median:.3f} %",
        f"{share.least:.3f}–{share.most:.3f}",
        f"{row.handover_microseconds:.0f} µs",
        f"{row.batches_shared} of {row.batches}",
        _remark(row),
    ]


def _remark(row: Summary) -> str:
    if row.problem:
        return row.problem
    if row.disturbed:
        return "disturbed"
    return f"{row.rounds_disturbed} of {row.rounds} rounds disturbed, left out" if row.rounds_disturbed else ""


def _percent(row: Summary) -> str:
    if row.difference_percent is None:
        return ""
    over = row.task in ("full", "raw", "crop") and row.difference_percent > DIFFERENCE_PERCENT_MAX
    return f"{row.difference_percent:.3f} %" + (" (over 1 %)" if over else "")


def _table(heading: list[str], rows: Iterable[list[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)


def _date() -> str:
    return time.strftime("%Y-%m-%d")


def _machine() -> str:
    """The processor and the number of its cores, and nothing that names the machine."""
    return f"{processor()}, {os.cpu_count()} cores"
