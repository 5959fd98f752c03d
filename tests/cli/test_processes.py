"""The command line in processes of its own: speed of help, pipes, a terminal, Ctrl-C, mpiexec."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from multimargin import KernelSVC, datasets, load

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mpi"))
import launch

COMMAND = [sys.executable, "-m", "multimargin"]
posix = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals and signals need a POSIX system")


@pytest.fixture
def folder(tmp_path):
    X, y = load_digits(return_X_y=True)
    datasets.save(tmp_path / "digits.libsvm", X[:400].astype(np.uint8), y[:400])
    rng = np.random.default_rng(0)
    datasets.save(tmp_path / "hard.npz", rng.normal(size=(5000, 30)), rng.integers(0, 6, 5000))
    return tmp_path


def run(folder, *words, **options):
    return subprocess.run([*COMMAND, *words], cwd=folder, capture_output=True, text=True, **options)


# -- speed -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["completion", "bash"], ["--version"]])
def test_help_and_completion_answer_at_once(words, tmp_path):
    """Below 150 ms on an idle machine; here the seconds of the processor, best of five."""
    least = np.inf
    for _ in range(5):
        before = os.times()
        assert run(tmp_path, *words).returncode == 0
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        least = min(least, used)
    assert least < 0.15


def test_help_imports_no_numpy():
    code = (
        "import sys\nfrom multimargin.cli import main\n"
        "for words in (['--help'], ['train', '--help'], ['predict', '--help'], ['tune', '--help']):\n"
        "    try:\n        main(words)\n    except SystemExit:\n        pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


# -- pipes -----------------------------------------------------------------------------------------------
def test_standard_input_and_output_can_be_pipes(folder):
    text = (folder / "digits.libsvm").read_text()
    done = run(folder, "train", "-", "m.mm", "--format", "libsvm", input=text)
    assert done.returncode == 0, done.stderr
    done = run(folder, "predict", "m.mm", "-", "-q", input=text)
    assert len(done.stdout.split()) == 400
    assert done.stderr == ""
    done = run(folder, "convert", "-", "-", "--to", "csv", "-q", input=text)
    assert len(done.stdout.splitlines()) == 401


@posix
def test_a_reader_that_goes_away_is_no_error(folder):
    assert run(folder, "train", "digits.libsvm", "-q").returncode == 0
    command = [*COMMAND, "predict", "digits.mm", "digits.libsvm", "--scores", "-q"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 0


@pytest.mark.slow
def test_a_piped_fit_prints_plain_lines(folder):
    done = run(folder, "train", "hard.npz", "-c", "1000", "-g", "0.01", "-e", "1e-7", "--time-limit", "4.5")
    assert done.returncode == 3
    assert "\r" not in done.stderr
    assert "\x1b" not in done.stderr
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= 4
    assert all("violation" in line and "SVs" in line and "rows/s" in line for line in lines)
    quiet = ["train", "hard.npz", "-c", "1000", "--time-limit", "3", "-q"]
    done = run(folder, *quiet)
    assert (done.stdout, done.stderr) == ("", "")


# -- a terminal ------------------------------------------------------------------------------------------
class Terminal:
    """A command in a pseudo-terminal of its own."""

    def __init__(self, folder, *words):
        import pty

        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ["COLUMNS"] = "200"
            os.execv(sys.executable, [*COMMAND, *words])
        self.text = ""

    def until(self, word, timeout=60.0):
        limit = time.monotonic() + timeout
        while word not in self.text:
            assert time.monotonic() < limit, self.text
            assert self.read(), self.text

    def read(self):
        """Read on; False at the end."""
        if not select.select([self.handle], [], [], 1.0)[0]:
            return True
        try:
            part = os.read(self.handle, 4096)
        except OSError:  # how Linux tells the end
            return False
        self.text += part.decode()
        return bool(part)

    def end(self):
        while self.read():
            pass
        os.close(self.handle)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


LONG = ["train", "hard.npz", "-c", "1000", "-g", "0.01", "-e", "1e-7"]


@posix
@pytest.mark.slow
def test_a_terminal_shows_one_line_that_moves(folder):
    terminal = Terminal(folder, *LONG, "--time-limit", "3")
    terminal.until("rows/s")
    assert terminal.end() == 3
    drawn = terminal.text.split("\r\x1b[K")
    assert len(drawn) > 5
    assert any("violation" in line and "gap" in line and "cache" in line for line in drawn)
    assert "wrote hard.mm" in drawn[-1]


@posix
def test_ctrl_c_ends_a_fit_with_130_and_keeps_the_old_model(folder):
    assert run(folder, "train", "digits.libsvm", "hard.mm", "-q").returncode == 0
    old = (folder / "hard.mm").read_bytes()
    terminal = Terminal(folder, *LONG)
    terminal.until("violation")
    os.write(terminal.handle, b"\x03")
    start = time.monotonic()
    assert terminal.end() == 130
    assert time.monotonic() - start < 20
    assert "interrupted" in terminal.text
    assert "Traceback" not in terminal.text
    assert (folder / "hard.mm").read_bytes() == old
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


@posix
@pytest.mark.slow
def test_ctrl_c_while_modules_are_imported_is_an_interrupt(folder):
    """Extension modules make ``ImportError`` of it: in the datetime that NumPy imports, for example."""
    code = (
        "import importlib, os, signal, sys\n"
        "from multimargin.cli import main\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numpy':\n"
        "            try:\n"
        "                os.kill(os.getpid(), signal.SIGINT)\n"
        "                importlib.import_module('re')\n"
        "            except KeyboardInterrupt:\n"
        "                raise ImportError('the C-extensions failed') from None\n"
        "sys.meta_path.insert(0, Finder())\n"
        "sys.exit(main(['train', 'digits.libsvm']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "multimargin train: interrupted\n"


@posix
@pytest.mark.slow
def test_ctrl_c_can_keep_the_model(folder):
    terminal = Terminal(folder, *LONG, "--keep-interrupted")
    terminal.until("violation")
    os.write(terminal.handle, b"\x03")
    assert terminal.end() == 130
    model = load(folder / "hard.mm")
    assert model.status_.name == "INTERRUPTED"
    assert "interrupted by the user" in terminal.text


@posix
@pytest.mark.slow
def test_a_signal_in_a_search_ends_it(folder):
    command = [*COMMAND, "tune", "hard.npz", "--C", "100", "1000", "--gamma", "0.01", "0.1"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(4.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "multimargin tune: interrupted"


# -- several processes -----------------------------------------------------------------------------------
def on_ranks(folder, *words):
    """The command on two ranks."""
    launch.need_mpi()
    command = [*launch.mpiexec(), "-n", "2", *COMMAND, *words]
    environment = launch.rank_environment()
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, timeout=100)


@pytest.mark.parametrize("machine", [[], ["--linear", "--C", "0.0001"]])
def test_mpiexec_trains_one_model(machine, folder):
    done = on_ranks(folder, "train", "digits.libsvm", "m.mm", "--engine", "mpi", "--json", *machine)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)  # one process has printed
    assert told["rows"] == 400
    model, (X, y) = load(folder / "m.mm"), datasets.load(folder / "digits.libsvm")
    assert model.engine == "mpi"
    if machine:
        assert model.status_.converged
    else:
        alone = KernelSVC().fit(X, y)
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))
        assert abs(model.dual_objective_ - alone.dual_objective_) <= 1e-3 * abs(alone.dual_objective_)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.libsvm"], "none.libsvm"),
        (["digits.libsvm", "no/such/dir.mm"], "cannot be written"),  # which one of them notices
        (["digits.libsvm", "digits.libsvm"], "is another file of this command"),
        (["digits.libsvm", "--class-weight", "12=2"], "there is no class '12'"),
    ],
)
def test_an_error_ends_all_ranks(words, said, folder):
    done = on_ranks(folder, "train", *words, "--engine", "mpi")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert done.stderr.count("multimargin train: error") == 1


def test_weights_name_classes_of_any_rank(folder):
    X, y = datasets.load(folder / "digits.libsvm")
    order = np.argsort(y, kind="stable")  # so that each process has some of the classes
    datasets.save(folder / "sorted.libsvm", X[order], y[order])
    done = on_ranks(folder, "train", "sorted.libsvm", "m.mm", "--engine", "mpi", "-w0", "2", "-w9", "3", "-q")
    assert done.returncode == 0, done.stderr
    assert load(folder / "m.mm").class_weight == {0: 2.0, 9: 3.0}


# -- what the README shows -------------------------------------------------------------------------------
README = Path(__file__).resolve().parents[2] / "README.md"


@posix
@pytest.mark.slow
@pytest.mark.skipif(not README.exists(), reason="the tests run without the README")
def test_the_shell_example_of_the_readme_runs(tmp_path):
    blocks = re.findall(
        r"^```bash\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    script = next(block for block in blocks if "multimargin train" in block)
    command = f'multimargin() {{ "{sys.executable}" -m multimargin "$@"; }}; set -e\n{script}'
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "accuracy 95." in done.stdout
    assert (tmp_path / "digits.html").exists()
    assert load(tmp_path / "tuned.mm").best_score_ > 0.95
