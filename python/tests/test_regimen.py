"""Regimens: which loader each epoch has, and that a stopped one goes on where it was."""

from __future__ import annotations

import json

import forebay
import pytest

EPOCH = 10_000


def loader(tiny, **options):
    return forebay.Loader(tiny, **{"batch_size": 4000, "shuffle": True, "seed": 3, **options})


def test_stages_follow_each_other_with_numbered_epochs(tiny):
    low, high = loader(tiny), loader(tiny, batch_size=5000)
    regimen = forebay.Regimen([("low", low, 2), ("high", high, 1)])
    assert len(regimen) == 3
    seen = []
    for epoch, current in regimen:
        keys = [key for batch in current for key in batch["key"]]
        assert len(set(keys)) == EPOCH
        seen.append((epoch, regimen.phase, current, tuple(keys[:5])))
    assert [(epoch, phase) for epoch, phase, *_ in seen] == [(0, "low"), (1, "low"), (2, "high")]
    assert seen[2][2] is high
    assert len({keys for *_, keys in seen}) == 3, "no two epochs have the same order"
    assert list(regimen) == [] and regimen.epoch == 3


def test_simple_and_transfer_are_those_of_the_study():
    sizes = {"q10": 14.5, "original": 145.7}
    simple = forebay.Regimen.simple({"q10": [], "original": []}, 90)
    transfer = forebay.Regimen.transfer({"q10": [], "original": []}, 90, last_epochs=10)
    assert [phase.epochs for phase in simple.phases] == [45, 45]
    assert [phase.epochs for phase in transfer.phases] == [80, 10]
    assert round(transfer.average_bytes(sizes), 1) == 29.1  # the formula's example
    assert simple.average_bytes(sizes) == pytest.approx(80.1)
    assert [phase.epochs for phase in forebay.Regimen.simple({"a": [], "b": [], "c": []}, 8).phases] == [3, 3, 2]
    with pytest.raises(forebay.UsageError, match="no entry for phase `original`"):
        transfer.average_bytes({"q10": 1})


def phases(tiny):
    return [("low", loader(tiny), 2), ("high", loader(tiny, batch_size=3000), 2)]


def taken(regimen, state=None, stop=None):
    """The keys of each batch from here on, until `stop` batches were taken; and the state there."""
    if state is not None:
        regimen.load_state_dict(json.loads(json.dumps(state)))
    found = []
    for epoch, current in regimen:
        for batch in current:
            found.append((epoch, batch["key"]))
            if len(found) == stop:
                return found, regimen.state_dict()
    return found, regimen.state_dict()


@pytest.mark.parametrize("stop", [1, 2, 3, 5, 6, 7, 10, 13])
def test_a_state_resumes_within_and_between_epochs(tiny, stop):
    whole, end = taken(forebay.Regimen(phases(tiny)))
    assert len(whole) == 2 * 3 + 2 * 4 and end["epoch"] == 4
    before, state = taken(forebay.Regimen(phases(tiny)), stop=stop)
    after, _ = taken(forebay.Regimen(phases(tiny)), state)
    assert before + after == whole


def test_a_state_after_the_batches_of_an_epoch_is_the_next_epoch(tiny):
    regimen = forebay.Regimen(phases(tiny))
    for epoch, current in regimen:
        for _ in current:
            pass
        state = regimen.state_dict()  # where checkpoints are usually saved
        assert state["epoch"] == epoch + 1 and state["loader"] is None


def test_other_loaders_are_between_epochs():
    class Sampler:
        epochs = []  # noqa: RUF012

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

    class Torch(list):
        sampler = Sampler()

    regimen = forebay.Regimen([("torch", Torch([1, 2]), 3)])
    for epoch, batches in regimen:
        assert list(batches) == [1, 2]
        if epoch == 1:
            break
    assert regimen.state_dict()["epoch"] == 2 and Sampler.epochs == [0, 1]
    resumed = forebay.Regimen([("torch", Torch([1, 2]), 3)])
    resumed.load_state_dict(regimen.state_dict())
    assert [epoch for epoch, _ in resumed] == [2]


def test_what_cannot_be_is_refused(tiny):
    for wrong, message in [
        ([], "no phases"),
        ([("a", None, 1)], "cannot be iterated"),
        ([("a", [], 0)], "`epochs` is `0`"),
        ([("a", [], 1), ("a", [], 1)], "two phases are called `a`"),
        ([("a", loader(tiny, epochs=2), 1)], "leave `epochs` of the loader out"),
    ]:
        with pytest.raises(forebay.UsageError, match=message):
            forebay.Regimen(wrong)
    regimen = forebay.Regimen([("a", [], 2)])
    with pytest.raises(forebay.UsageError, match="same phases"):
        regimen.load_state_dict(forebay.Regimen([("a", [], 3)]).state_dict())
    with pytest.raises(forebay.UsageError, match="not a state"):
        regimen.load_state_dict({})


def test_successive_halving_keeps_the_better_half():
    configurations = [0.1, 0.9, 0.5, 0.7, 0.3]
    search = forebay.SuccessiveHalving(configurations, [("q10", ["low"], 1), ("q50", ["mid"], 2), ("q90", ["high"], 4)])
    trials = []
    for trial in search:
        batches = [batch for _, loader in trial for batch in loader]
        trials.append((trial.phase.name, trial.number, trial.first_epoch, batches))
        trial.report(trial.configuration)
    assert [(phase, number) for phase, number, *_ in trials] == [
        *(("q10", number) for number in range(5)),
        ("q50", 1), ("q50", 2), ("q50", 3),
        ("q90", 1), ("q90", 3),
    ]  # fmt: skip
    assert trials[-1][2:] == (3, ["high"] * 4) and search.best == 0.9


def test_a_search_resumes_and_a_diverged_model_loses():
    def made():
        return forebay.SuccessiveHalving(["a", "b", "c", "d"], [("low", [], 1), ("high", [], 1)])

    search = made()
    for trial in search:
        trial.report(float("nan") if trial.configuration == "a" else trial.number)
        if trial.number == 2:
            break
    # The last trial was left before it was counted, and begins again.
    resumed = made()
    resumed.load_state_dict(json.loads(json.dumps(search.state_dict())))
    order = []
    for trial in resumed:
        order.append((trial.phase.name, trial.configuration))
        trial.report(trial.number)
    assert order == [("low", "c"), ("low", "d"), ("high", "c"), ("high", "d")]
    assert resumed.best == "d"
    with pytest.raises(forebay.UsageError, match="has no score"):
        for _ in made():
            pass
    with pytest.raises(forebay.UsageError, match="no phase is done"):
        _ = made().best
