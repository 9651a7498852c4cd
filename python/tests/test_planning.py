"""Planning on profiles that are written down, so that every figure is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forebay
import pytest


def strategy(name: str, position: int, bytes_per_sample: float, seconds: float, **more: Any) -> dict[str, Any]:
    split = {"position": position, "name": name.partition("+")[0]}
    run = {"samples": 100, "skipped": 0, "seconds": seconds, "bytes_read": int(bytes_per_sample * 100)}
    measured = {
        "name": name,
        "split": split,
        "storage_bytes": int(bytes_per_sample * 100),
        "bytes_per_sample": bytes_per_sample,
        "prep_seconds": 0.0,
        "deserialize_cpu_seconds": 0.0,
        "online_cpu_seconds": 0.0,
        "runs": [run, run],
    }
    return {**measured, **more}


def made(*, threads: int = 2, caching: str = "none", faster: float = 1.0) -> forebay.Profile:
    """10,000 photos on a disk of 400 MB/s; `faster` divides the time of every run."""
    online = {"online_cpu_seconds": 0.0041}
    kept = {"prep_seconds": 1.2, "deserialize_cpu_seconds": 0.0001}
    content = {
        "version": 1,
        "forebay": "0.1.0",
        "machine": {"cpu": "made", "cores": 2, "memory_bytes": 8 * 10**9, "memory_bytes_per_second": 4e9},
        "pipeline": {"name": "photos", "step": [{"op": "decode"}]},
        "data": {"root": "photos", "samples": 10_000, "bytes": 10**9},
        "method": {
            "sample_count": 100,
            "runs": 2,
            "threads": threads,
            "shards": 2,
            "caching": caching,
            "seed": 7,
        },
        "storage": {
            "name": "disk",
            "sequential_bytes_per_second": 4e8,
            "files_per_second": 100,
            "file_bytes": 1e5,
        },
        "steps": [
            {"name": "read", "cpu_seconds": 0.0001, "bytes_out": 1e5, "random": False},
            {"name": "decode", "cpu_seconds": 0.004, "bytes_out": 6e5, "random": False},
        ],
        "strategies": [
            strategy("unprocessed", 0, 1e5, 1.02 / faster, **online),
            strategy("decoded", 2, 6e5, 0.155 / faster, **kept),
            strategy("decoded+png", 2, 3e5, 0.31 / faster, **{**kept, "prep_seconds": 3.6}),
        ],
    }
    return forebay.Profile(json.dumps(content))


@pytest.fixture
def profile() -> forebay.Profile:
    return made()


def test_another_machine_is_planned_for(profile: forebay.Profile) -> None:
    here = profile.plan()
    assert here.chosen == "decoded" and here.assumptions == []
    there = profile.plan(what_if={"read_bytes_per_second": 3.2e9, "cores": 8, "memory_bytes": 80e9, "samples": 20_000})
    machine = there.content["other_machine"]
    assert (machine["cores"], machine["memory_bytes"], machine["samples"]) == (8, 80 * 10**9, 20_000)
    assert any("80.0 GB of memory" in assumed for assumed in there.assumptions)
    head = repr(there).splitlines()[1].split()
    assert "expected" in head and "measured" in head and "predicted" not in head
    # As the program's own example has it: eight times the bandwidth, and the model's error here.
    faster = profile.plan(what_if={"read_bytes_per_second": 3.2e9})
    assert round(faster.ranking[0]["forecast"]["expected_samples_per_second"]) == 5161
    trainer = profile.plan(what_if={"trainer_samples_per_second": 50})
    assert trainer.chosen == "unprocessed", "what the trainer cannot take counts for nothing"


def test_what_was_cached_is_said(profile: forebay.Profile) -> None:
    assert repr(profile).splitlines()[0].endswith("2 threads, nothing cached")
    (notice,) = profile.notices
    # On 8 GB the 6 GB of `decoded` leave no room for anything else.
    assert "in 2 of 3 strategies (up to 3.00 GB of 8.00 GB)" in notice and 'caching="system"' in notice
    plan = profile.plan()
    assert plan.notices == [notice] and repr(plan).splitlines()[-1] == f"warning: {notice}"
    assert "Measured with 2 threads, nothing cached." in repr(plan).splitlines()[0]
    cached = made(caching="system")
    assert cached.notices == cached.plan().notices == [] and "warning" not in repr(cached) + repr(cached.plan())
    assert "page cache kept" in repr(cached) and "page cache kept" in repr(cached.plan())


def test_a_plan_says_what_the_runs_showed() -> None:
    content = made().content
    # The model has the disk bind `decoded`; its workers were never idle.
    seen = {"seconds": 10, "threads": 2, "work_seconds": 20, "read_wait_seconds": 15, "consumer_wait_seconds": 10}
    for run in content["strategies"][1]["runs"]:
        run["stats"] = {**seen, "user_seconds": 20}
    plan = forebay.Profile(json.dumps(content)).plan()
    assert plan.ranking[0]["prediction"]["bound_by"] == "storage"
    assert repr(plan).splitlines()[2].split()[-1] == "cpu" and "the runs were CPU-bound" in plan.reason
    there = forebay.Profile(json.dumps(content)).plan(what_if={"cores": 2, "read_bytes_per_second": 4e8})
    assert repr(there).splitlines()[2].split()[-1] == there.ranking[0]["prediction"]["bound_by"]


def test_money_counts(profile: forebay.Profile) -> None:
    prices: forebay.Prices = {"cpu_hour": 0.04, "gb_month": 0.02, "accelerator_hour": 2.5}
    plan = profile.plan(weights="money", prices=prices, epochs=90, months=6)
    assert plan.content["weights"] == {"prep": 0, "storage": 0, "throughput": 0, "money": 1}
    costs = {row["name"]: row["cost"]["total"] for row in plan.ranking}
    assert plan.chosen == min(costs, key=lambda name: costs[name]) == "decoded"
    # 1 GB for 6 months, and 90 epochs of 102 seconds.
    assert costs["unprocessed"] == pytest.approx(1 * 6 * 0.02 + 90 * 102 / 3600 * 2.5)
    assert "cost" in repr(plan).splitlines()[1].split()
    # Where nothing is trained, what needs no storage and no time is cheapest.
    assert profile.plan(weights="money", prices={"gb_month": 0.02}, months=6).chosen == "unprocessed"


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"weights": "money"}, "requires `prices`"),
        ({"weights": {"money": 1}}, "requires `prices`"),
        ({"weights": "speed"}, "unknown weight `speed`\nhint: expected `prep`, `storage`, `throughput`, `money`"),
        ({"weights": {"storage": "much"}}, "`storage` is `'much'`, but must be a number"),
        ({"epochs": 3}, "pass `prices`"),
        ({"prices": {"accelerator_hour": 2.5}}, "the price of `accelerator_hour` needs `epochs`\nhint: pass the number of `epochs`"),
        ({"prices": {"gb_month": 1}, "epochs": 2}, "hint: pass the number of `months`"),
        ({"prices": {"gpu_hour": 1}}, "unknown price `gpu_hour`"),
        ({"prices": {"cpu_hour": -1}}, "`cpu_hour` is `-1`"),
        ({"what_if": {"disks": 2}}, "unknown `what_if` `disks`\nhint: expected `cores`"),
        ({"what_if": {"cores": 0}}, "`cores` is `0`, but must be 1 or more"),
        ({"what_if": {"cores": 1.5}}, "1.5"),
        ({"trainer": -2}, "`trainer` is `-2`"),
        ({"max_storage": "2 GO"}, "there is no unit `GO`"),
        ({"max_prep_time": "soon"}, "`max_prep_time` is `soon`, but must be a time"),
    ],
)
def test_what_makes_no_sense_is_refused(profile: forebay.Profile, wanted: Any, message: str) -> None:
    for ask in (profile.plan, profile.analyze, profile.table):
        with pytest.raises(forebay.UsageError) as caught:
            ask(**wanted)
        assert message in str(caught.value)
    with pytest.raises(TypeError, match="speed"):
        profile.plan(speed=1)  # type: ignore[call-arg]


def test_an_analysis(profile: forebay.Profile) -> None:
    analysis = profile.analyze()
    assert analysis.best == "decoded" and analysis.pareto == ["unprocessed", "decoded", "decoded+png"]
    encoded = analysis.strategies[2]
    assert encoded["plain"] == "decoded" and encoded["space_saving"] == 0.5 and encoded["prep_factor"] == 3
    assert encoded["throughput_factor"] == pytest.approx(0.5)
    assert repr(analysis).splitlines() == [
        "Analysis of `photos`",
        "  strategy     rank  samples/s  storage  prepare  Pareto  saves  throughput",
        "  unprocessed     3   98.0 ± 0  1.00 GB      0 s     yes      -           -",
        "* decoded         1    645 ± 0  6.00 GB    2 min     yes      -           -",
        "  decoded+png     2    323 ± 0  3.00 GB    6 min     yes   50 %       0.500",
    ]
    assert analysis._repr_html_().count("<tr") == 4
    assert profile.analyze(weights="storage").best == "unprocessed"
    assert "expected" in repr(profile.analyze(what_if={"cores": 4})).splitlines()[1].split()


def test_tables(profile: forebay.Profile) -> None:
    rows = profile.table(weights="storage")
    assert [(row["strategy"], row["rank"], row["caching"]) for row in rows] == [
        ("unprocessed", 1, "none"),
        ("decoded", 3, "none"),
        ("decoded+png", 2, "none"),
    ]
    assert "space_saving" not in rows[0] and rows[2]["space_saving"] == 0.5 and rows[2]["prediction.load"] > 0
    pytest.importorskip("pandas")
    frame = profile.to_pandas()
    assert list(frame.index) == ["unprocessed", "decoded", "decoded+png"] and frame["pareto"].all()
    assert profile.analyze().to_pandas().loc["decoded", "rank"] == 1


def test_profiles_side_by_side(tmp_path: Path) -> None:
    made(threads=4, faster=2.0).save(tmp_path / "four.json")
    comparison = forebay.compare([made(threads=2), tmp_path / "four.json", made(threads=2, caching="system", faster=3.0)])
    assert comparison.caching is not None and comparison.caching["rows"][1]["system"] == pytest.approx(3 * 645.16, rel=1e-4)
    (group,) = comparison.threads
    assert [point["y"] for point in group["lines"][0]["points"]] == pytest.approx([1, 2])
    assert comparison.sample_counts is None
    shown = repr(comparison).splitlines()
    assert shown[0] == "Comparison of 3 profiles"
    assert shown[1] == "Samples per second by what is cached:"
    assert shown[2].split() == ["strategy", "none", "system", "application"]
    assert shown[3].split() == ["unprocessed", "98.0", "294", "-"]
    assert shown[6] == "Speed-up by threads (caching `none`):"
    assert shown[7].split() == ["strategy", "2", "4"] and shown[8].split() == ["unprocessed", "1.00", "2.00"]
    assert [(row["profile"], row["strategy"]) for row in comparison.table()][3:5] == [(1, "unprocessed"), (1, "decoded")]
    pytest.importorskip("pandas")
    frame = comparison.to_pandas(weights="storage")
    assert frame.loc[(1, "unprocessed"), "threads"] == 4


def test_profiles_that_cannot_be_compared() -> None:
    assert repr(forebay.compare([made()])).endswith("No two of them differ in exactly one setting.")
    with pytest.raises(forebay.UsageError, match="no profiles to compare"):
        forebay.compare([])
    with pytest.raises(forebay.MissingFileError):
        forebay.compare(["none.json"])


def test_files_are_the_same_there_and_back(profile: forebay.Profile, tmp_path: Path) -> None:
    profile.save(tmp_path / "profile.json")
    assert forebay.Profile.load(tmp_path / "profile.json") == profile != made(threads=4)
    plan = forebay.plan(tmp_path / "profile.json", what_if={"cores": 4}, prices={"cpu_hour": 1})
    plan.save(tmp_path / "plan.json")
    assert forebay.Plan.load(tmp_path / "plan.json") == plan and repr(forebay.Plan.load(tmp_path / "plan.json")) == repr(plan)


def test_plans_are_plotted(profile: forebay.Profile) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import colors, pyplot

    axes = profile.plan(max_storage=4 * 10**9).plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["decoded+png", "unprocessed", "decoded"]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([322.58, 98.04, 645.16], rel=1e-3)
    chosen, other, ruled_out = (bar.get_facecolor() for bar in axes.patches)
    assert ruled_out == colors.to_rgba("lightgray") and len({chosen, other, ruled_out}) == 3
    assert axes.get_title() == "photos: keep decoded+png"
    expected = profile.plan(what_if={"read_bytes_per_second": 3.2e9}).plot()
    assert max(bar.get_width() for bar in expected.patches) == pytest.approx(5161, rel=1e-3)
    pyplot.close("all")


def test_plots_go_where_they_are_wanted(profile: forebay.Profile) -> None:
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2)
    assert profile.plot(ax=left) is left and left.get_title() == "photos, nothing cached"
    assert profile.plan().plot(ax=right) is right
    assert [len(axes.patches) for axes in (left, right)] == [3, 3] and len(pyplot.get_fignums()) == 1
    # Once more on the same axes: the first strategy stays at the top, and no name is there twice.
    profile.plan().plot(ax=right)
    assert right.yaxis_inverted()
    assert [label.get_text() for label in right.get_yticklabels()] == ["decoded", "decoded+png", "unprocessed"]
    pyplot.close(figure)


def test_a_plan_by_money_draws_money(profile: forebay.Profile) -> None:
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    prices: forebay.Prices = {"cpu_hour": 0.04, "gb_month": 0.02, "accelerator_hour": 2.5}
    wanted: Any = {"prices": prices, "epochs": 90, "months": 6}
    plan = profile.plan(weights="money", max_storage=4 * 10**9, **wanted)
    axes = plan.plot()
    assert axes.get_xlabel() == "in the currency of the prices"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["accelerators", "storage", "preparation"]
    # The ends of the last parts are what each costs in all.
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches[-3:]]
    assert ends == pytest.approx([row["cost"]["total"] for row in plan.ranking])
    chosen, _, ruled_out = axes.get_yticklabels()
    assert chosen.get_text() == plan.chosen and chosen.get_fontweight() == "bold" and ruled_out.get_color() == "gray"
    by_rate = profile.plan(**wanted).plot()
    assert by_rate.get_xlabel() == "samples per second", "prices alone do not make it a choice by money"
    pyplot.close("all")


def test_a_plan_says_in_which_compression_each_split_is_best_kept() -> None:
    content = json.loads(made().to_json())
    content["compressions"] = [
        {
            "strategy": "decoded+zstd-3",
            "plain": "decoded",
            "compression": "zstd-3",
            "records": 100,
            "bytes": 60_000_000,
            "ratio": 3.0,
            "compress_bytes_per_second": 2e8,
            "decompress_bytes_per_second": 1e9,
            "reader_share": 1.0,
        }
    ]
    plan = forebay.Profile(json.dumps(content)).plan()
    (choice,) = plan.compressions
    assert (choice["strategy"], choice["compression"]) == ("decoded", "zstd-3")
    assert choice["sentence"] == "`zstd-3` reads 3.00× fewer bytes; inflating costs 600 µs of the 1.50 ms that the disk took"
    assert made().plan().compressions == []
