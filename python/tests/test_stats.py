"""Where the time of a loader went."""

from pathlib import Path

import forebay


def test_stats_say_where_the_time_went(photos: Path) -> None:
    loader = forebay.Loader("cv", data=photos, batch_size=4, threads=2)
    nothing = loader.stats()
    assert (nothing.seconds, nothing.samples, nothing.bound_by) == (0, 0, "unknown")
    count = sum(len(batch["key"]) for batch in loader)
    once = loader.stats()
    assert once.samples == count == loader.samples
    assert once.threads == 2
    assert once.work_seconds > 0
    assert once.user_seconds + once.system_seconds > 0
    assert once.bound_by in ("storage", "cpu", "trainer")
    assert "cores used" in str(once)
    batches = iter(loader)
    next(batches)
    assert loader.stats().samples > once.samples
    assert loader.stats().seconds > once.seconds
