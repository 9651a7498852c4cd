"""Budgets, against the tables of the (DL)² study."""

from __future__ import annotations

import forebay
import pytest

GIB = 2**30
#: ImageNet as JPEG, in GiB (table II), and seconds of an epoch of ResNet50 on a hard disk (table III).
PAPER = [("original", 145.7, 6585), ("q85", 67.5, 2584), ("q75", 51.3, 1251), ("q50", 35.3, 1250), ("q25", 23.6, 1248), ("q10", 14.5, 1248)]
IMAGENET = [forebay.Variant(name, int(size * GIB), seconds) for name, size, seconds in PAPER]


def test_epochs_in_time_are_those_of_the_study():
    # Fig. 7: with the original data, 5, 10 and 34 epochs in 10, 20 and 62.4 hours.
    assert [IMAGENET[0].epochs_in(hours * 3600) for hours in (10, 20, 62.4)] == [5, 10, 34]
    assert forebay.Variant("on an SSD", 1, 516).epochs_in(5 * 3600) == 34
    assert [variant.epochs_in(62.4 * 3600) for variant in IMAGENET[2:]] == [179, 179, 180, 180]
    assert IMAGENET[0].epochs_in(100) == 0
    assert forebay.Variant("unknown", 1).epochs_in(100) is None


def test_a_first_epoch_that_takes_longer_counts_once():
    variant = forebay.Variant("cached", 1, 10.0, 50.0)
    assert [variant.epochs_in(seconds) for seconds in (49, 50, 59, 60, 100)] == [0, 1, 1, 2, 6]
    assert variant.seconds_of(6) == 100


def test_limited_time_takes_the_best_quality_that_trains_all_epochs():
    found = forebay.budget(IMAGENET, epochs=90, time="62h")
    assert (found.chosen, found.epochs, found.share) == ("q75", 90, 1.0)  # the study's best, too
    assert "`q75` is the best quality that trains 90 epochs" in found.reason and "`original` trains 33" in found.reason
    short = forebay.budget(IMAGENET, epochs=90, time="10h")
    assert (short.chosen, short.epochs) == ("q75", 28)  # as many as any, at the best quality
    assert "28 of 90" in short.reason


@pytest.mark.parametrize(("percent", "chosen"), [(50, "q85"), (40, "q75"), (30, "q50"), (20, "q25"), (10, "q10")])
def test_limited_storage_takes_the_best_quality_of_which_all_samples_fit(percent, chosen):
    found = forebay.budget(IMAGENET, storage=int(145.7 * GIB * percent / 100))
    assert found.chosen == chosen and found.share == 1.0 and found.epochs is None
    # Subsampling would leave so much of the original.
    assert found.rows[0]["share"] == pytest.approx(percent / 100)


def test_what_fits_nowhere_is_subsampled():
    found = forebay.budget(IMAGENET, storage="7GB")
    assert found.chosen == "q10" and 0.44 < found.share < 0.46
    assert "stratified_subset" in found.reason
    # A share of the samples takes that share of the time.
    timed = forebay.budget(IMAGENET, storage="7GB", time="10h", epochs=90)
    assert timed.epochs == int(36000 / (1248 * timed.share))


def test_memory_is_a_preference():
    assert forebay.budget(IMAGENET, memory=64 * GIB).chosen == "q75"
    assert forebay.budget(IMAGENET, memory="1GB").chosen == "original"


def test_a_budget_is_a_table():
    found = forebay.budget(IMAGENET, epochs=90, time="62h", storage="60GB")
    assert "* q75" in repr(found) or "* q50" in repr(found)
    assert found._repr_html_().count("<tr") == len(IMAGENET) + 1
    assert found.to_dict()["chosen"] == found.chosen
    assert "in memory" not in repr(found)  # nobody asked


def test_arguments_that_say_nothing_are_refused():
    with pytest.raises(forebay.UsageError, match="no variants"):
        forebay.budget([])
    with pytest.raises(forebay.UsageError, match="`time` has no effect without"):
        forebay.budget(IMAGENET, time="1h")
    for wrong in (float("nan"), float("inf"), -1.0):
        with pytest.raises(forebay.UsageError, match="`epoch_seconds`"):
            forebay.budget([forebay.Variant("q", 1, epoch_seconds=wrong)], epochs=3)
    with pytest.raises(forebay.UsageError, match="`bytes`"):
        forebay.budget([forebay.Variant("q", -5)], storage="1GB")
    with pytest.raises(forebay.UsageError, match="time of an epoch of `q` is unknown"):
        forebay.budget([forebay.Variant("q", 1)], time="1h", epochs=3)


def test_a_stratified_subset_takes_the_first_of_each_class():
    labels = [0, 0, 0, 0, 1, 1, 2] * 10
    subset = forebay.stratified_subset(labels, 0.1)
    assert [labels[at] for at in subset] == [0, 0, 0, 0, 1, 1, 2]
    assert forebay.stratified_subset(["a"] * 100, 0.29) == list(range(29))
    assert forebay.stratified_subset([3, 4], 0.01) == [0, 1]
    assert forebay.stratified_subset([3, 4], 1) == [0, 1]
    for share in (0, 1.5, float("nan")):
        with pytest.raises(forebay.UsageError, match="share"):
            forebay.stratified_subset([3, 4], share)
