"""Labels: by folder, top folder, table, value or function, with fixed classes; and files that are given as a list."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
from pathlib import Path

import forebay
import numpy
import pytest
from conftest import png


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Pictures of three classes in nested folders, two of each, and a table of values."""
    lines = []
    for number, path in enumerate(["bird/owl/0", "bird/tit/1", "cat/2", "cat/3", "dog/4", "dog/5"]):
        file = tmp_path / "train" / f"{path}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(png(number))
        lines.append(f"{number}\t{number / 4}")
    (tmp_path / "train" / "values.tsv").write_text("\n".join(lines))
    return tmp_path / "train"


def decoded(**source: object) -> forebay.Pipeline:
    return forebay.Pipeline.files("**/*.png", **source).decode()  # type: ignore[arg-type]


def labels(loader: forebay.Loader) -> dict[str, object]:
    """The label of each sample, by the picture's number, which every pixel of it has."""
    found = {}
    for batch in loader:
        for image, label, key in zip(batch["image"], batch["label"], batch["key"], strict=True):
            number = int(image[0, 0, 0])
            assert Path(key).stem == str(number)
            found[number] = label.item()
    return found


def test_fixed_classes_keep_labels_where_a_class_is_missing(tree: Path, tmp_path: Path) -> None:
    validation = tmp_path / "validation"
    shutil.copytree(tree, validation)
    shutil.rmtree(validation / "cat")
    pipeline = decoded(label="top-folder")
    train = forebay.Loader(pipeline, data=tree)
    assert train.classes == ["bird", "cat", "dog"]
    assert labels(train) == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 2}
    fixed = forebay.Loader(pipeline, data=validation, classes=train.classes)
    assert fixed.classes == train.classes and labels(fixed) == {0: 0, 1: 0, 4: 2, 5: 2}
    # The same in the pipeline itself, and in a data set.
    assert labels(forebay.Loader(decoded(label="top-folder", classes=train.classes), data=validation)) == labels(fixed)
    dataset = forebay.build(pipeline, tmp_path / "set", data=validation, classes=train.classes, strategy="decoded")
    assert dataset.classes == train.classes and labels(forebay.Loader(dataset)) == labels(fixed)
    # Presets, too: a name, a folder, and the classes.
    ready = forebay.Loader("cv", data=validation, classes=["tit", "owl", "dog"])
    keys = [(Path(key).stem, int(label)) for batch in ready for key, label in zip(batch["key"], batch["label"], strict=False)]
    assert keys == [("0", 1), ("1", 0), ("4", 2), ("5", 2)]


def test_a_class_that_is_not_listed_is_an_error_or_skipped(tree: Path) -> None:
    pipeline = decoded(label="top-folder")
    with pytest.raises(forebay.UsageError, match=r"`cat/2.png` is of the class `cat`, which is none of the 2 .*\nhint: "):
        forebay.Loader(pipeline, data=tree, classes=["bird", "dog"])
    loader = forebay.Loader(pipeline, data=tree, classes=["bird", "dog"], on_error="skip")
    assert labels(loader) == {0: 0, 1: 0, 4: 1, 5: 1}
    assert loader.skipped == 2 and [skipped.key for skipped in loader.skipped_samples] == ["cat/2.png", "cat/3.png"]


def test_columns_of_a_table_are_named(tree: Path) -> None:
    rows = [f'{number},{number * 2},"of ""{"even" if number % 2 == 0 else "odd"}"""' for number in range(6)]
    (tree / "labels.csv").write_text("\n".join(["id,twice,kind", *rows]), encoding="utf-8")
    kinds = decoded(label="table", table="labels.csv", table_columns=("id", "kind"))
    assert labels(forebay.Loader(kinds, data=tree)) == {number: number % 2 for number in range(6)}
    numbers = decoded(label="table", table="labels.csv", table_columns=("id", "twice"))
    assert labels(forebay.Loader(numbers, data=tree)) == {number: number * 2 for number in range(6)}
    with pytest.raises(forebay.UsageError, match=r"has 3 columns: `id`, `twice`, `kind`\nhint: .*`table_columns`"):
        forebay.Loader(decoded(label="table", table="labels.csv"), data=tree)
    with pytest.raises(forebay.UsageError, match="did you mean `kind`"):
        forebay.Loader(decoded(label="table", table="labels.csv", table_columns=("id", "kin")), data=tree)
    with pytest.raises(forebay.UsageError, match="must be two names"):
        decoded(label="table", table="labels.csv", table_columns="id")
    with pytest.raises(forebay.UsageError, match="`table_columns` has no effect without `table`"):
        decoded(table_columns=("id", "kind"))


def test_what_makes_no_sense_of_labels_is_refused(tree: Path, tmp_path: Path) -> None:
    for wrong in ([], "ant", [1, 2]):
        with pytest.raises(forebay.UsageError, match="`classes` is"):
            forebay.Loader(decoded(), data=tree, classes=wrong)
    for source, message in [
        ({"classes": ["a", "a"]}, "`a` twice"),
        ({"label": None, "classes": ["a"]}, "has no effect"),
        ({"label": None, "label_type": "float"}, "has no effect"),
        ({"label_type": "int", "classes": ["a"]}, "has no effect"),
        ({"label": "list"}, "has no effect"),
        ({"label": "color"}, "unknown variant"),
    ]:
        with pytest.raises(forebay.UsageError, match=message):
            decoded(**source)
    forebay.build(decoded(), tmp_path / "set", data=tree, strategy="decoded")
    with pytest.raises(forebay.UsageError, match="`classes` cannot be used with a data set"):
        forebay.Loader(tmp_path / "set", classes=["a"])


def test_values_of_a_table_are_learned_as_they_are(tree: Path, tmp_path: Path) -> None:
    pipeline = decoded(label="table", table="values.tsv", label_type="float")
    assert pipeline.output["label"] == "float32[]"
    expected = {number: number / 4 for number in range(6)}
    loader = forebay.Loader(pipeline, data=tree, batch_size=4)
    (batch, _) = loader
    assert batch["label"].dtype == numpy.float32 and batch["label"].shape == (4,)
    assert labels(loader) == expected and loader.classes == []
    assert forebay.Pipeline.from_json(pipeline.to_json()) == pipeline
    dataset = forebay.build(pipeline, tmp_path / "set", data=tree, strategy="decoded")
    assert labels(forebay.Loader(dataset, shuffle=True)) == expected
    forebay.profile(pipeline, tree, samples=4, runs=1, seconds=0, strategies=["unprocessed", "decoded"], work_dir=tmp_path, progress=False)
    dataset.export_tar(tmp_path / "tars", progress=False)
    fields = {"image": ("npy", "uint8[?, ?, 3]"), "value": ("label.npy", "float32[]")}
    again = forebay.Loader(forebay.Pipeline.tar(fields=fields), data=tmp_path / "tars")
    assert sorted(value.item() for batch in again for value in batch["value"]) == sorted(expected.values())


def number_of(path: Path) -> int:
    return int(path.stem)


def test_a_function_of_the_path_gives_labels_once(tree: Path, tmp_path: Path) -> None:
    seen = []

    def parity(path: Path) -> str:
        assert path.is_file()
        seen.append(path)
        return "odd" if number_of(path) % 2 else "even"

    loader = forebay.Loader(decoded(label=parity), data=tree, epochs=2)
    assert len(seen) == 6
    assert labels(loader) == {0: 0, 1: 1, 2: 0, 3: 1, 4: 0, 5: 1} and loader.classes == ["even", "odd"]
    assert len(seen) == 6
    # Whole numbers stay what they are, values say that they are.
    assert labels(forebay.Loader(decoded(label=number_of), data=tree)) == {number: number for number in range(6)}
    with pytest.raises(forebay.UsageError, match='label_type="float"'):
        forebay.Loader(decoded(label=lambda path: number_of(path) / 4), data=tree)
    half = decoded(label=lambda path: numpy.float32(number_of(path) / 4), label_type="float")
    assert labels(forebay.Loader(half, data=tree)) == {number: number / 4 for number in range(6)}
    fixed = forebay.Loader(decoded(label=parity), data=tree, classes=["odd", "even"])
    assert labels(fixed) == {0: 1, 1: 0, 2: 1, 3: 0, 4: 1, 5: 0}
    # Built and measured, the function goes along with the plan.
    profile = forebay.profile(decoded(label=parity), tree, samples=4, runs=1, seconds=0, strategies=["decoded"], work_dir=tmp_path)
    dataset = profile.plan().build(tmp_path / "set")
    assert dataset.classes == ["even", "odd"] and labels(forebay.Loader(dataset)) == labels(loader)
    profile.save(tmp_path / "profile.json")
    forgotten = forebay.Profile.load(tmp_path / "profile.json").plan()
    with pytest.raises(forebay.UsageError, match=r"Python function `parity`.*\nhint: .*functions=.*table"):
        forgotten.build(tmp_path / "again")
    assert forgotten.build(tmp_path / "again", functions={"parity": parity}).classes == ["even", "odd"]


def test_what_a_label_function_raises_is_raised(tree: Path) -> None:
    def picky(path: Path) -> int:
        if path.stem == "3":
            raise KeyError("three")
        return number_of(path)

    with pytest.raises(KeyError, match="three") as raised:
        forebay.Loader(decoded(label=picky), data=tree)
    assert "`picky`" in raised.value.__notes__[0] and "cat/3.png" in raised.value.__notes__[0]
    loader = forebay.Loader(decoded(label=picky), data=tree, on_error="skip")
    assert labels(loader) == {number: number for number in (0, 1, 2, 4, 5)} and loader.skipped == 1
    with pytest.raises(forebay.PipelineError, match=r"(?s)None.*a label"):
        forebay.Loader(decoded(label=lambda path: None), data=tree)


def test_a_list_of_files_is_taken_in_its_order(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    paths = ["dog/5.png", Path("bird/tit/1.png"), tree / "cat/2.png", "./bird/owl/0.png"]
    names = ["dog/5.png", "bird/tit/1.png", "cat/2.png", "bird/owl/0.png"]
    pipeline = decoded(label="top-folder")
    for data in (paths, tuple(paths), iter(paths), forebay.FileList(paths), numpy.array([str(path) for path in paths])):
        loader = forebay.Loader(pipeline, data=data, batch_size=3)
        assert [key for batch in loader for key in batch["key"]] == names
        assert labels(loader) == {5: 2, 1: 0, 2: 1, 0: 0}
    shuffled = forebay.Loader(pipeline, data=paths, shuffle=True, epochs=8, batch_size=4)
    orders = {tuple(batch["key"]) for batch in shuffled}
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(names))} and len(orders) > 1
    # Below another folder, and outside of it.
    monkeypatch.chdir(tmp_path)
    listed = forebay.FileList(["5.png", tree / "cat/2.png"], root=tree / "dog")
    loader = forebay.Loader(decoded(), data=listed)
    assert [key for batch in loader for key in batch["key"]] == ["5.png", os.fspath(tree / "cat/2.png")]


def test_listed_files_may_have_labels(tree: Path, tmp_path: Path) -> None:
    paths = sorted(tree.rglob("*.png"), key=number_of)
    for given, expected, kind in [
        (["b", "a", "a", "c", "c", "a"], {0: 1, 1: 0, 2: 0, 3: 2, 4: 2, 5: 0}, "int"),
        ([7, 7, 8, 8, 9, 9], {0: 7, 1: 7, 2: 8, 3: 8, 4: 9, 5: 9}, "int"),
        (numpy.arange(6) / 8, {number: number / 8 for number in range(6)}, "float32[]"),
        ([1, 0.5, 0, 0, 0, 0], {0: 1.0, 1: 0.5, 2: 0.0, 3: 0.0, 4: 0.0, 5: 0.0}, "float32[]"),
    ]:
        data = forebay.FileList(paths, labels=given, root=tree)
        loader = forebay.Loader(decoded(), data=data)
        assert labels(loader) == expected and loader.pipeline.output["label"] == kind
        output = tmp_path / f"set{expected}"
        dataset = forebay.build(decoded(), output, data=data, strategy="decoded", progress=False)
        assert labels(forebay.Loader(dataset)) == expected
    fixed = forebay.Loader(decoded(), data=forebay.FileList(paths[:2], labels=["x", "y"]), classes=["y", "x"])
    assert labels(fixed) == {0: 1, 1: 0}


def test_a_list_that_is_wrong_is_refused(tree: Path, tmp_path: Path) -> None:
    load = forebay.Loader
    for data, message in [
        ([], "list of files is empty"),
        ([tree / "cat/2.png", f"{tree}/cat/./2.png"], r"cat/2\.png` twice"),
        ([3], "is not a path"),
        ({"cat/2.png"}, "are not a list"),
        (3, "needs a folder of files, or a list"),
        (None, "needs a folder of files, or a list"),
    ]:
        with pytest.raises(forebay.UsageError, match=message):
            load(decoded(), data=data)
    with pytest.raises(forebay.MissingFileError, match=r"cat/9\.png"):
        load(decoded(), data=[tree / "cat/2.png", tree / "cat/9.png"])
    loader = load(decoded(), data=[tree / "cat/2.png", tree / "cat/9.png"], on_error="skip")
    assert loader.samples == 1 and sum(len(batch["key"]) for batch in loader) == 1 and loader.skipped == 1
    for wrong in ([1], [[1], [2]]):
        with pytest.raises(forebay.UsageError, match="label"):
            forebay.FileList(["a", "b"], labels=wrong)
    # A plan that measured a list cannot know which.
    paths = sorted(tree.rglob("*.png"))
    plan = forebay.profile(decoded(), paths, samples=4, runs=1, seconds=0, strategies=["decoded"], work_dir=tmp_path).plan()
    with pytest.raises(forebay.UsageError, match=r"given as a list, and there is none\nhint: .*data="):
        plan.build(tmp_path / "set")
    assert len(plan.build(tmp_path / "set", data=paths)) == 6


def test_what_has_no_order_is_no_list_of_labels_or_classes(tree: Path) -> None:
    for wrong in ({"cat/2.png": 1}, {1, 2}, "a", 3):
        with pytest.raises(forebay.UsageError, match="are not a list"):
            forebay.FileList(["cat/2.png"], labels=wrong, root=tree)
    for wrong in ({"ant": 2, "bee": 1, "cat": 0}, {"ant", "bee"}, "ab", 3):
        with pytest.raises(forebay.UsageError, match="must be a list of names"):
            forebay.Loader(decoded(), data=tree, classes=wrong)


def test_names_that_look_like_numbers_stay_names(tree: Path) -> None:
    paths = sorted(tree.rglob("*.png"), key=number_of)[:3]
    loader = forebay.Loader(decoded(), data=forebay.FileList(paths, labels=["01", "1", "2"]))
    assert labels(loader) == {0: 0, 1: 1, 2: 2} and loader.classes == ["01", "1", "2"]
    for given in (["", "a", "b"], [" ", "a", "b"]):
        with pytest.raises(forebay.UsageError, match="is empty"):
            forebay.Loader(decoded(), data=forebay.FileList(paths, labels=given))
    # A pipeline that wants classes is not changed by what it is given.
    with pytest.raises(forebay.UsageError, match="must be a class or an integer"):
        forebay.Loader(decoded(label_type="class"), data=forebay.FileList(paths, labels=[0.5, 1, 2]))


def test_a_file_that_is_missing_does_not_change_the_labels_of_others(tree: Path) -> None:
    names = ["cat/2.png", "nowhere.png", "dog/5.png"]
    data = forebay.FileList(names, labels=["a", "b", "c"], root=tree)
    loader = forebay.Loader(decoded(), data=data, on_error="skip")
    assert labels(loader) == {2: 0, 5: 2} and loader.classes == ["a", "b", "c"]


def test_a_listed_file_has_a_top_folder_only_below_the_data(tree: Path) -> None:
    pipeline = forebay.Pipeline.files("**/*.png", label="top-folder").decode()
    inside = forebay.FileList([tree / "cat/2.png", "dog/5.png"], root=tree)
    assert forebay.Loader(pipeline, data=inside).classes == ["cat", "dog"]
    with pytest.raises(forebay.UsageError, match="does not lie below the data folder"):
        forebay.Loader(pipeline, data=forebay.FileList([tree / "cat/2.png"], root=tree / "dog"))
    with pytest.raises(forebay.UsageError, match=r"with `\.\.` in it"):
        forebay.Loader(pipeline, data=forebay.FileList(["dog/../cat/2.png"], root=tree))


def test_another_current_folder_means_no_other_files(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree.parent)
    listed = forebay.FileList(["cat/2.png"], root=tree.name)
    loaders = [forebay.Loader(decoded(), data=data) for data in (tree.name, listed)]
    before = [labels(loader) for loader in loaders]
    listed.paths[0] = "dog/5.png"
    monkeypatch.chdir(tmp_path)
    assert [labels(copy.copy(loader)) for loader in loaders] == before
    assert [labels(pickle.loads(pickle.dumps(loader))) for loader in loaders] == before


def test_shards_may_be_listed(tars: Path) -> None:
    listed = forebay.FileList(["train-2.tar", "train-0.tar"], root=tars)
    pipeline = forebay.Pipeline.tar(fields={"image": "png"}).decode()
    keys = [key for batch in forebay.Loader(pipeline, data=listed) for key in batch["key"]]
    assert keys == [f"folder/{number:04}" for number in [*range(20, 30), *range(10)]]
