"""Every command, in this process: what it prints and writes, and its exit codes."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

from multimargin import KernelSVC, KernelSVCCV, LinearSVC, LinearSVCCV, datasets, load
from multimargin.cli.letters import translated
from multimargin.cli.main import COMMANDS, main
from multimargin.cli.options import (
    ALL_OPTIONS,
    ENGINES,
    FORMATS,
    KERNELS,
    MACHINES,
    SCALES,
    SEARCH_OPTIONS,
    SOLVERS,
    SUBPROBLEMS,
)
from multimargin.engines import ENGINES as KNOWN_ENGINES
from multimargin.files.formats import FORMATS as KNOWN_FORMATS
from multimargin.files.scaling import KINDS
from multimargin.kernels import make_kernel
from multimargin.methods.table import METHODS, PARALLEL
from multimargin.problems import PROBLEMS


# -- help and usage --------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, run):
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: multimargin {command}")
    assert len(out.splitlines()) > 5


def test_the_top_help_names_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    shown = {" ".join(line.split()) for line in out.splitlines()}  # each in one line
    assert all(f"{name} {summary}" in shown for name, summary in COMMANDS.items())
    assert "130 interrupted" in out
    assert run() == (2, out, "")
    assert run("--version")[1].startswith("multimargin 0.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["frobnicate"], "invalid choice"),
        (["train"], "the following arguments are required: DATA"),
        (["train", "demo:iris", "--C", "many"], "invalid float value: 'many'"),
        (["train", "demo:iris", "--gamma", "many"], "'many' is not a number or 'scale' or 'auto'"),
        (["train", "demo:iris", "--machine", "perceptron"], "invalid choice"),
        (["train", "demo:iris", "--frob"], "unrecognized arguments: --frob"),
        (["train", "demo:iris", "--loss", "hinge"], "--loss is for a linear machine: add --linear"),
        (["train", "demo:iris", "--linear", "-g", "1"], "--gamma is not for --linear"),
        (["train", "demo:iris", "--linear", "--checkpoint", "c"], "--checkpoint is not for --linear"),
        (["train", "demo:iris", "--checkpoint-every", "3"], "needs --checkpoint FILE"),
        (["train", "demo:iris", "--class-weight", "heavy"], "must be 'balanced' or LABEL=WEIGHT"),
        (["train", "demo:lego"], "no bundled data 'lego'"),
        (["train", "demo:iris", "-b", "1"], "'multimargin tune' calibrates"),
        (["train", "demo:iris", "-s", "0"], "--machine c-svc"),
        (["train", "demo:iris", "-v", "5"], "multimargin cv --folds N"),
        (["train", "demo:iris", "-n", "0.5"], "no nu-SVC"),
        (["train", "demo:iris", "-t", "7"], "-t must be 0 to 4"),
        (["train", "demo:iris", "-w", "1"], "-w1 0.5"),
        (["train", "demo:iris", "-t"], "-t needs a value"),
        (["convert", "demo:iris", "x.csv", "--rows", "many"], "--rows must be FIRST:END"),
        (["cv", "demo:iris", "--folds", "1"], "--folds must be at least 2"),
        (["completion", "tcsh"], "invalid choice: 'tcsh'"),
        (["train", "demo:iris", "-h", "0"], "--no-shrinking"),
        (["train", "demo:iris", "--label", "3"], "--label is about data files, and demo:iris is none"),
        (["train", "demo:iris", "--one-based"], "--one-based is about data files"),
        (["tune", "demo:iris", "--linear", "--gamma", "1"], "--gamma is not for --linear"),
        (["tune", "demo:iris", "--linear", "--kernel", "rbf"], "--kernel is not for --linear"),
        (["tune", "demo:iris", "--max-iter", "5"], "--max-iter is for a linear machine: add --linear"),
    ],
)
def test_usage_errors_have_code_2_and_one_clear_line(words, said, run):
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "none.libsvm"], "none.libsvm: No such file or directory"),
        (["train", "bad.libsvm"], "bad.libsvm"),
        (["train", "demo:iris", "no/such/dir.mm"], "cannot be written"),
        (["train", "demo:iris", "-c", "-1"], "C must be a finite number > 0"),
        (["train", "demo:iris", "--machine", "c-svc"], "c-svc"),
        (["train", "demo:iris", "-w7", "2"], "there is no class '7', only 0, 1, 2"),
        (["train", "rows.npy"], "has no labels"),
        (["predict", "none.mm", "demo:iris"], "none.mm: No such file or directory"),
        (["predict", "bad.libsvm", "demo:iris"], "is not a model file"),
        (["info", "bad.libsvm"], "is not a model file"),
        (["export", "bad.libsvm", "x.onnx"], "is not a model file"),
        (["convert", "demo:iris", "x.unknown"], "format"),
        (["convert", "demo:iris", "no/such/dir.csv"], "The output file"),
        (["predict", "none.mm", "demo:iris", "no/such/dir.txt"], "The output file"),
        (["report", "none.mm", "demo:iris", "no/such/dir.html"], "The report"),
        (["train", "demo:iris", "--no-labels"], "has no labels"),
    ],
)
def test_errors_have_code_1_and_one_clear_line(words, said, run):
    code, out, err = run("convert", "demo:iris", "rows.npy", "-q")
    np.save("rows.npy", np.zeros((4, 2)))
    with open("bad.libsvm", "w") as file:
        file.write("1 1:0.5\n2 1:x\n")
    code, out, err = run(*words)
    assert code == 1
    assert out == ""
    assert len(err.splitlines()) == 1
    assert said in err
    assert err.startswith(f"multimargin {words[0]}: error: ")


def test_debug_raises(run):
    with pytest.raises(FileNotFoundError):
        main(["train", "none.libsvm", "--debug"])


def test_letters_become_options():
    words = ["train", "d", "-t", "0", "-c", "2", "-g", "0.5", "-e", "0.1", "-m", "100", "-d", "2", "-r", "1"]
    words += ["-w1", "0.5", "-w-1", "2", "-wcat", "3", "m"]
    found = " ".join(translated("train", words))
    assert found == (
        "train d --kernel linear --C 2 --gamma 0.5 --tol 0.1 --cache-size 100 --degree 2 --coef0 1 "
        "--class-weight 1=0.5 --class-weight -1=2 --class-weight cat=3 m"
    )
    assert translated("predict", ["-b"]) == ["-b"]


def test_the_choices_are_those_of_the_package():
    assert set(MACHINES) == set(PROBLEMS)
    assert set(SOLVERS) == {"auto", *METHODS, *PARALLEL}
    assert set(ENGINES) == {"auto", "mpi", *KNOWN_ENGINES}
    assert set(FORMATS) == {"auto", *KNOWN_FORMATS}
    assert tuple(SCALES) == tuple(KINDS)
    for kernel in KERNELS:
        make_kernel(kernel, degree=3, gamma=1.0, coef0=0.0)
    for name in SUBPROBLEMS:
        LinearSVC(subproblem=name)._check_params()


def test_every_parameter_of_the_searches_is_an_option():
    elsewhere = {"Cs", "gammas", "cv", "scoring", "refit", "drop", "calibration", "n_jobs", "checkpoint"}
    elsewhere |= {"verbose", "on_interrupt", "engine"}
    for search, kind in ((KernelSVCCV, "kernel"), (LinearSVCCV, "linear")):
        parameters = set(inspect.signature(search).parameters) - elsewhere
        own = {option.parameter for option in SEARCH_OPTIONS if kind in option.of} - {"C", "gamma"}
        assert own == parameters


def test_every_parameter_of_the_estimators_is_an_option():
    elsewhere = {"warm_start", "verbose", "callback", "on_interrupt"}  # --start, --quiet, --keep-interrupted
    for estimator, kind in ((KernelSVC, "kernel"), (LinearSVC, "linear")):
        parameters = set(inspect.signature(estimator).parameters) - elsewhere - {"checkpoint"}
        assert {option.parameter for option in ALL_OPTIONS if kind in option.of} == parameters


# -- train and predict -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("words", "model"),
    [
        ([], KernelSVC()),
        (["-c", "10", "-g", "0.001", "-e", "1e-4"], KernelSVC(C=10.0, gamma=0.001, tol=1e-4)),
        (["--machine", "weston-watkins", "--bias", "free"], KernelSVC("weston-watkins", bias="free")),
        (["-t", "1", "-d", "2", "-r", "1"], KernelSVC(kernel="poly", degree=2, coef0=1.0)),
        (["-w3", "0.5", "-w8", "2"], KernelSVC(class_weight={3: 0.5, 8: 2.0})),
        (["--class-weight", "balanced"], KernelSVC(class_weight="balanced")),
        (["--solver", "dasmc", "--working-set-size", "50"], KernelSVC(solver="dasmc", working_set_size=50)),
        (["--engine", "numpy", "--no-shrinking"], KernelSVC(engine="numpy", shrinking=False)),
        (["--cache-size", "10", "--precision", "float64"], KernelSVC(cache_size=10.0, dtype="float64")),
        (["--seed", "3", "--threads", "1"], KernelSVC(random_state=3, n_threads=1)),
    ],
)
def test_the_command_line_trains_the_same_model_as_python(words, model, digits, run):
    code, out, err = run("train", "train.libsvm", *words)
    assert code == 0, err
    assert "converged" in out
    assert "wrote train.mm" in out
    found = load("train.mm")
    X, y = datasets.load("train.libsvm")
    assert X.dtype == np.uint8
    model.fit(X, y)
    assert found.dual_coef_.tobytes() == model.dual_coef_.tobytes()
    assert found._support.tobytes() == model._support.tobytes()
    assert found._support.dtype == np.uint8
    assert repr(found) == repr(model)


def test_the_linear_machine_is_the_same_too(digits, run):
    code, _out, err = run("train", "train.libsvm", "--linear", "--C", "1e-4", "m.mm", "--no-shuffle")
    assert code == 0, err
    model = LinearSVC(C=1e-4, shuffle=False).fit(*datasets.load("train.libsvm"))
    assert load("m.mm").coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("kind", SCALES)
def test_predict_repeats_the_scaling(kind, digits, run):
    assert run("train", "train.libsvm", "--scale", kind, "-q") == (0, "", "")
    X, y = datasets.load("train.libsvm")
    T, t = datasets.load("test.libsvm")
    scaling = datasets.Scaling.fit(kind, X)
    model = KernelSVC().fit(scaling.apply(X), y)
    code, out, _err = run("predict", "train.mm", "test.libsvm", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["predicted"] == model.predict(scaling.apply(T)).tolist()
    assert found["accuracy"] == model.score(scaling.apply(T), t)
    assert load("train.mm").score(T, t) == found["accuracy"]
    assert json.loads(run("info", "train.mm", "--json")[1])["scaling"] == kind
    assert run("report", "train.mm", "test.libsvm", "-q") == (0, "", "")
    page = Path("train.html").read_text(encoding="utf-8")
    assert all(part in page for part in (f"{kind}; ", "× 64, uint8", f'value="{found["accuracy"]!r}"'))


def test_predict_writes_labels_scores_and_a_table(digits, run):
    run("train", "train.libsvm", "-q")
    model = load("train.mm")
    X, y = datasets.load("test.libsvm", n_features=64)
    code, out, err = run("predict", "train.mm", "test.libsvm")
    assert out.split() == [str(label) for label in model.predict(X)]
    right = int((model.predict(X) == y).sum())
    assert err.splitlines()[0] == f"accuracy {right / len(y):.4%} ({right} of {len(y)})"
    code, out, err = run("predict", "train.mm", "test.libsvm", "out.txt")
    assert err == ""
    assert out.startswith("accuracy")
    counts = np.array(
        [[0 if c == "." else int(c) for c in line.split()[1:]] for line in out.splitlines()[2:]]
    )
    assert counts.sum() == len(y)
    assert np.trace(counts) == right
    assert np.array_equal(np.loadtxt("out.txt"), model.predict(X))
    code, out, err = run("predict", "train.mm", "test.libsvm", "--scores", "-q")
    lines = [line.split("\t") for line in out.splitlines()]
    assert lines[0] == ["label", *map(str, range(10))]
    scores = np.array([[float(word) for word in line[1:]] for line in lines[1:]])
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-7, atol=1e-8)
    assert run("predict", "train.mm", "test.libsvm", "s.npy", "--scores", "-q", "--mmap") == (0, "", "")
    np.testing.assert_array_equal(np.load("s.npy"), model.decision_function(X))
    code, out, err = run("predict", "train.mm", "test.libsvm", "--proba")
    assert code == 2
    assert "multimargin tune" in err


def test_predict_without_labels_and_with_words(run):
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names[y]
    datasets.save("iris.csv", X, names)
    assert run("train", "iris.csv", "-q")[0] == 0
    datasets.save("new.csv", X[::10])
    code, out, err = run("predict", "iris.mm", "new.csv")
    assert (code, err) == (0, "")
    assert out.split() == load("iris.mm").predict(X[::10]).tolist()
    code, out, err = run("predict", "iris.mm", "iris.csv", "--json", "o.txt")
    assert json.loads(out)["labels"] == sorted(set(names))


def test_two_classes_have_one_score(run):
    X, y = load_iris(return_X_y=True)
    datasets.save("two.libsvm", X, np.where(y == 1, 1, -1))
    run("train", "two.libsvm", "--machine", "c-svc", "-q")
    _code, out, _err = run("predict", "two.mm", "two.libsvm", "--scores", "-q")
    assert out.splitlines()[0] == "label\t1"
    scores = [float(line.split("\t")[1]) for line in out.splitlines()[1:]]
    np.testing.assert_allclose(scores, load("two.mm").decision_function(X), rtol=1e-7)


def test_a_fit_that_does_not_converge_has_code_3(digits, run):
    code, out, _ = run("train", "train.libsvm", "--max-iter", "0")
    assert code == 3
    assert "stopped at max_iter" in out
    code, out, _err = run("train", "train.libsvm", "--max-iter", "0", "--json")
    assert code == 3
    assert json.loads(out)["status"] == "max_iter"


def test_checkpoints_and_starts(digits, run):
    assert run("train", "train.libsvm", "-q", "--checkpoint", "c.ck", "--checkpoint-every", "0")[0] == 0
    again = run("train", "train.libsvm", "--json", "--checkpoint", "c.ck")
    assert json.loads(again[1])["converged"]
    assert load("train.mm").checkpoint is None
    code, out, err = run("train", "train.libsvm", "next.mm", "--start", "train.mm", "--json")
    assert code == 0
    assert json.loads(out)["n_iter"] <= 2
    assert load("next.mm").warm_start is False
    code, out, err = run("train", "train.libsvm", "--linear", "--start", "train.mm")
    assert code == 1
    assert "is a KernelSVC, and a LinearSVC is wanted" in err


# -- the others ------------------------------------------------------------------------------------------
def test_json_is_json(digits, run):
    pytest.importorskip("onnx", reason="onnx is not installed")
    for words in (
        ["train", "train.libsvm"],
        ["info", "train.mm"],
        ["predict", "train.mm", "test.libsvm"],
        ["predict", "train.mm", "test.libsvm", "--scores"],
        ["cv", "train.libsvm", "--folds", "2"],
        ["tune", "train.libsvm", "t.mm", "--C", "1", "10", "--gamma", "0.001", "--folds", "2"],
        ["info", "t.mm"],
        ["predict", "t.mm", "test.libsvm", "--proba"],
        ["bench", "train.libsvm", "--repeats", "1"],
        ["report", "train.mm", "test.libsvm"],
        ["convert", "train.libsvm", "train.npz"],
        ["export", "train.mm", "train.onnx"],
    ):
        code, out, err = run(*words, "--json")
        assert code == 0, (words, err)
        json.loads(out, parse_constant=pytest.fail)


def test_cv_and_tune_are_the_search_of_python(digits, run):
    X, y = datasets.load("train.libsvm")
    code, out, _ = run("cv", "train.libsvm", "-c", "10", "-g", "0.001", "--folds", "3", "--json")
    search = KernelSVCCV(Cs=[10], gammas=[0.001], cv=3, refit=False, drop=None).fit(X, y)
    assert json.loads(out)["mean"] == search.best_score_
    code, out, _err = run("tune", "train.libsvm", "-c", "1", "10", "-g", "0.001", "0.01", "--folds", "3")
    assert code == 0
    assert "best: C " in out
    search = KernelSVCCV(Cs=[1, 10], gammas=[0.001, 0.01], cv=3).fit(X, y)
    found = load("train.mm")
    assert found.best_params_ == search.best_params_
    assert found.best_estimator_.dual_coef_.tobytes() == search.best_estimator_.dual_coef_.tobytes()
    assert found.temperature_ == search.temperature_


@pytest.mark.parametrize("calibration", ["temperature", "sigmoid", "isotonic"])
def test_probabilities_are_those_of_the_model(calibration, run):
    X, y = load_iris(return_X_y=True)
    words = ["--C", "1", "10", "--gamma", "0.1", "m.mm", "--calibration", calibration]
    assert run("tune", "demo:iris", *words, "-q") == (0, "", "")
    assert run("predict", "m.mm", "demo:iris", "p.npy", "--proba", "-q")[0] == 0
    found = np.load("p.npy")
    np.testing.assert_array_equal(found, load("m.mm").predict_proba(X))
    search = KernelSVCCV(Cs=[1, 10], gammas=[0.1], calibration=calibration, cv=5).fit(X, y)
    np.testing.assert_array_equal(found, search.predict_proba(X))


def test_the_linear_machine_is_tuned_too(digits, run):
    X, y = datasets.load("train.libsvm")
    words = ["--linear", "--C", "0.0001", "0.001", "--folds", "3", "--checkpoint", "c.ck", "--jobs", "1"]
    code, out, err = run("tune", "train.libsvm", "m.mm", *words)
    assert code == 0, err
    assert "best: C " in out
    assert Path("c.ck").exists()
    found = load("m.mm")
    search = LinearSVCCV(Cs=[0.0001, 0.001], cv=3).fit(X, y)
    assert found.best_params_ == search.best_params_
    assert found.checkpoint is None
    np.testing.assert_allclose(found.decision_function(X), search.decision_function(X), rtol=1e-3, atol=1e-3)
    more = ["--loss", "squared_hinge", "--machine", "one-vs-rest", "--no-intercept", "--max-iter", "2000"]
    assert run("tune", "train.libsvm", "q.mm", *words[:3], *more, "-q")[0] == 0
    best = load("q.mm").best_estimator_
    assert (best.loss, best.fit_intercept, best.max_iter) == ("squared_hinge", False, 2000)
    code, out, _ = run("cv", "train.libsvm", "--linear", "--C", "0.001", "--folds", "3", "--json")
    assert code == 0
    assert json.loads(out)["mean"] == pytest.approx(search.cv_results_["mean_test_score"][1], abs=1e-3)


def test_labels_in_a_file_of_their_own(run):
    code, _, err = run("convert", "demo:digits", "d.npy", "--labels-to", "d.labels.npy")
    assert code == 0, err
    assert run("train", "d.npy", "m.mm", "--labels", "d.labels.npy", "-q") == (0, "", "")
    X, y = load_digits(return_X_y=True)
    model = KernelSVC().fit(X.astype(np.uint8), y)
    assert load("m.mm").dual_coef_.tobytes() == model.dual_coef_.tobytes()
    assert run("convert", "demo:digits", "x.npy", "--no-labels", "-q")[0] == 0
    assert np.array_equal(np.load("x.npy"), X)


def test_info_says_what_there_is(digits, run):
    run("train", "train.libsvm", "-q", "--scale", "minmax")
    run("train", "train.libsvm", "bytes.mm", "-q")
    _code, out, _err = run("info", "bytes.mm")
    assert "uint8" in out
    assert "converged: every sample" in out
    assert "crammer-singer" in out
    assert "minmax" in run("info", "train.mm")[1]


def test_convert_goes_there_and_back(run):
    X, y = load_digits(return_X_y=True)
    code, out, err = run("convert", "demo:digits", "d.libsvm")
    assert (code, out) == (0, "")
    assert "1797 rows, 64 features (uint8), 10 classes" in err
    run("convert", "d.libsvm", "d.csv.gz", "-q")
    run("convert", "d.csv.gz", "part.npz", "--rows", "100:200", "-q")
    A, a = datasets.load("part.npz")
    assert np.array_equal(A, X[100:200])
    assert np.array_equal(a, y[100:200])
    run("convert", "part.npz", "mixed.npz", "--shuffle", "1", "-q")
    _B, b = datasets.load("mixed.npz")
    assert not np.array_equal(a, b)
    assert np.array_equal(np.sort(a), np.sort(b))
    run("convert", "d.libsvm", "scaled.npz", "--scale", "minmax", "-q")
    assert datasets.load("scaled.npz").X.max() == 1.0


def test_export_writes_what_the_model_writes(run):
    X, y = load_iris(return_X_y=True)
    datasets.save("two.libsvm", X, np.where(y == 1, 1, -1))
    run("train", "two.libsvm", "--machine", "c-svc", "-q")
    code, _, err = run("export", "two.mm", "two.model")
    assert code == 0, err
    load("two.mm").export("again.model")
    assert Path("two.model").read_text() == Path("again.model").read_text()
    run("train", "two.libsvm", "--machine", "c-svc", "-q", "--scale", "minmax")
    code, _out, err = run("export", "two.mm", "two.model")
    assert code == 1
    assert "no place for a scaling" in err


def test_bench_compares_the_same_problem_for_two_classes(run):
    X, y = load_iris(return_X_y=True)
    datasets.save("two.libsvm", X, y == 1)
    _, out, _ = run("bench", "two.libsvm", "--repeats", "1", "--json")
    told = json.loads(out)
    assert told["multimargin"]["machine"] == "c-svc"
    assert told["multimargin"]["accuracy"] == told["SVC"]["accuracy"]
    _code, out, _err = run("bench", "two.libsvm", "--repeats", "1")
    assert "SVC takes" in out
    assert "violation" in out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_and_options(shell, run):
    code, out, _err = run("completion", shell)
    assert code == 0
    for word in (*COMMANDS, "machine", "weston-watkins", "proba"):
        assert word in out
