"""The completion scripts in the shells that they are for."""

import shutil
import subprocess
from pathlib import Path

import pytest

from multimargin.cli.main import COMMANDS

CASES = [
    (["tr"], {"train"}),
    ([""], set(COMMANDS)),
    (["train", "--machine", "w"], {"weston-watkins"}),
    (["train", "--mac"], {"--machine"}),
    (["predict", "--pro"], {"--proba"}),
    (["completion", "z"], {"zsh"}),
    (["train", "dat"], {"data.libsvm"}),
]


@pytest.fixture
def complete(run):
    """What a shell offers for the words after ``multimargin``."""
    Path("data.libsvm").touch()

    def ask(shell, words):
        program = shutil.which(shell)
        if program is None:
            pytest.skip(f"{shell} is not installed")
        script = run("completion", shell)[1]
        if shell == "fish":
            asked = f"complete -C 'multimargin {' '.join(words)}'"
        else:
            listed = " ".join(f"'{word}'" for word in words)
            asked = f"COMP_WORDS=(multimargin {listed}); COMP_CWORD={len(words)}; _multimargin\n"
            asked += 'printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run([program, "-c", f"{script}\n{asked}"], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return {line.split("\t")[0] for line in done.stdout.splitlines()}

    return ask


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(("words", "offered"), CASES)
def test_a_shell_completes(shell, words, offered, complete):
    found = complete(shell, words)
    assert offered <= found
    if offered != set(COMMANDS):
        assert found == offered


def test_zsh_takes_the_script(run):
    program = shutil.which("zsh")
    if program is None:
        pytest.skip("zsh is not installed")
    script = run("completion", "zsh")[1]
    check = "autoload -U compinit && compinit -u -D\n" + script + "\nprint -- ${_comps[multimargin]}"
    done = subprocess.run([program, "-f", "-c", check], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_multimargin" in done.stdout
