"""Where the time of a loader went."""

from pathlib import Path

import forebay


def test_stats_say_where_the_time_went(photos: Path) -> None:
    loader = forebay.Loader("cv", data=photos, batch_size=4, threads=2)
    nothing = loader.stats()
    assert (nothing.seconds, nothing.samples, nothing.bound_by) == (0, 0, "unknown")
    count = sum(len(batch["key"]) for batch in loader)
    assert loader.stats().samples == count == loader.samples
    # Enough of them that all of it, without their starts, tells what bound it.
    for _ in range(9):
        for batch in loader:
            assert len(batch["key"]) <= 4
    once = loader.stats()
    assert once.samples == 10 * count
    assert once.threads == 2
    assert once.work_seconds > 0
    assert once.user_seconds + once.system_seconds > 0
    assert once.bound_by in ("storage", "cpu", "trainer")
    assert "cores used" in str(once)
    batches = iter(loader)
    next(batches)
    assert loader.stats().samples > once.samples
    assert loader.stats().seconds > once.seconds


def test_one_batch_tells_no_bottleneck(photos: Path) -> None:
    loader = forebay.Loader("cv", data=photos, batch_size=1000, threads=2)
    assert str(loader.stats()) == "nothing was loaded"
    assert len(list(loader)) == 1
    stats = loader.stats()
    assert stats.work_seconds > 0 and stats.bound_by == "unknown"
    assert str(stats).startswith("too short to determine the bottleneck: it ended ")
