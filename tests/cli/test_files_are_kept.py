"""No command destroys a file that it reads, or one of another kind; wrong files are named."""

import os
from pathlib import Path

import pytest

from multimargin import load


@pytest.fixture
def files(run):
    """Data and a model; what ``run`` says is checked later."""
    assert run("convert", "demo:iris", "iris.csv", "-q")[0] == 0
    assert run("convert", "demo:iris", "test.csv", "-q")[0] == 0
    assert run("train", "iris.csv", "iris.mm", "-q") == (0, "", "")
    assert run("report", "iris.mm", "iris.csv", "iris.html", "-q") == (0, "", "")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["train", "iris.csv", "iris.csv"], "iris.csv"),
        (["train", "iris.csv", "./iris.csv"], "iris.csv"),
        (["train", "iris.csv", "--checkpoint", "iris.csv"], "iris.csv"),
        (["train", "iris.csv", "new.mm", "--checkpoint", "new.mm"], "iris.csv"),
        (["train", "iris.csv", "new.mm", "--checkpoint", "iris.mm", "--start", "iris.mm"], "iris.mm"),
        (["tune", "iris.csv", "iris.csv", "--gamma", "1"], "iris.csv"),
        (["tune", "iris.csv", "--gamma", "1", "--checkpoint", "iris.csv"], "iris.csv"),
        (["cv", "iris.csv", "--checkpoint", "iris.csv"], "iris.csv"),
        (["predict", "iris.mm", "iris.csv", "iris.mm"], "iris.mm"),
        (["predict", "iris.mm", "iris.csv", "iris.csv"], "iris.csv"),
        (["report", "iris.mm", "iris.csv", "iris.csv"], "iris.csv"),
        (["report", "iris.mm", "iris.csv", "iris.mm"], "iris.mm"),
        (["convert", "iris.csv", "iris.csv", "--rows", "0:2"], "iris.csv"),
        (["convert", "iris.csv", "x.npy", "--labels-to", "iris.csv"], "iris.csv"),
        (["export", "iris.mm", "iris.mm", "--to", "onnx"], "iris.mm"),
    ],
)
def test_a_file_of_the_command_is_not_overwritten(words, kept, files, run):
    before = Path(kept).read_bytes()
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert "is another file of this command" in err
    assert Path(kept).read_bytes() == before
    assert not Path("new.mm").exists()


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["train", "iris.csv", "test.csv"], "test.csv"),
        (["tune", "iris.csv", "test.csv", "--gamma", "1"], "test.csv"),
        (["report", "iris.mm", "iris.csv", "test.csv"], "test.csv"),
    ],
)
def test_a_second_data_file_is_not_overwritten(words, kept, files, run):
    """As by ``train TRAIN TEST``, which other programs' users may expect to test."""
    before = Path(kept).read_bytes()
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert "is not overwritten: give another name, or remove it" in err
    assert Path(kept).read_bytes() == before


def test_files_of_the_same_kind_are_replaced(files, run):
    Path("empty.mm").touch()
    for words in (
        ["train", "iris.csv", "iris.mm", "-c", "3"],
        ["train", "iris.csv", "iris.mm", "--start", "iris.mm"],
        ["train", "iris.csv", "empty.mm"],
        ["report", "iris.mm", "iris.csv", "iris.html"],
    ):
        code, _, err = run(*words, "-q")
        assert (code, err) == (0, ""), words
    assert load("iris.mm").C == 3.0


@pytest.mark.skipif(os.name != "posix", reason="devices have other names")
def test_a_device_may_be_the_output(files, run):
    code, out, _ = run("predict", "iris.mm", "iris.csv", os.devnull)
    assert code == 0
    assert out.startswith("accuracy")


def test_files_in_the_wrong_place_are_named(files, run):
    code, _, err = run("predict", "iris.csv", "iris.mm")
    assert code == 1
    assert "iris.mm is one: MODEL comes before DATA" in err
    for words in (["train", "iris.mm", "new.mm"], ["predict", "iris.mm", "iris.mm"]):
        code, _, err = run(*words)
        assert code == 1
        assert "iris.mm: it is a model file of multimargin, not a data file" in err


@pytest.mark.parametrize("command", ["predict", "report"])
def test_data_with_other_features_name_those_of_the_model(command, files, run):
    Path("wide.libsvm").write_text("0 1:1 2:1\n1 5:1\n")
    code, _, err = run(command, "iris.mm", "wide.libsvm")
    assert code == 1
    assert "line 2, column 3: the index 5" in err
    assert "iris.mm was trained on 4 features; 'train --features N' leaves room for more" in err


def test_a_start_keeps_its_scaling(files, run):
    assert run("train", "iris.csv", "scaled.mm", "--scale", "minmax", "-q")[0] == 0
    for words, said in (
        (["--start", "scaled.mm"], "trained with --scale minmax"),
        (["--start", "scaled.mm", "--scale", "unit"], "trained with --scale minmax"),
        (["--start", "iris.mm", "--scale", "unit"], "trained without --scale"),
    ):
        code, _, err = run("train", "iris.csv", "next.mm", *words)
        assert code == 2
        assert said in err
    assert run("train", "iris.csv", "next.mm", "--start", "scaled.mm", "--scale", "minmax", "-q")[0] == 0
    assert load("next.mm")[0].kind == "minmax"
