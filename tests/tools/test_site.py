"""What stands beside the code: pages, cluster scripts, release files."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="the package was installed without pages"
)
yaml = pytest.importorskip("yaml")


def module(path):
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(Path(path).stem + "_under_test", ROOT / path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


# -- links of the site -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("page", "said"),
    [
        ('<a href="b.html#here">x</a><img src="data:,">', None),
        ('<a href="https://example.org/">x</a>', None),
        ('<a href="c.html">x</a>', "no file c.html"),
        ('<a href="b.html#there">x</a>', "no anchor b.html#there"),
        ('<img src="no.png">', "no file no.png"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js from elsewhere"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "from elsewhere"),
        ('<link rel="canonical" href="https://example.org/">', None),
    ],
)
def test_broken_links_are_found(page, said, tmp_path, capsys):
    (tmp_path / "a.html").write_text(page)
    (tmp_path / "b.html").write_text('<p id="here">')
    code = module("docs/check_links.py").main(tmp_path)
    out = capsys.readouterr().out
    assert code == (said is not None)
    assert (said or " 0 broken") in out


# -- numbers of the pages ----------------------------------------------------------------------------------
def test_pages_show_what_commands_printed():
    page = module("benchmarks/page.py")
    scripts = {Path(path).stem: path for path in page.PAGES}
    assert all((ROOT / "benchmarks" / path).is_file() for path in scripts.values())
    shown = [
        name
        for path in (ROOT / "docs").glob("*.md")
        for name in re.findall(r"measured/(\w+)\.txt", read(path))
    ]
    assert "choices" in shown
    for name in shown:
        first, second = read(f"docs/measured/{name}.txt").splitlines()[:2]
        assert first.startswith(f"$ python benchmarks/{scripts[name]}")
        assert second.startswith("# commit ")


def test_the_chart_quotes_what_was_measured():
    rows, data = {}, None
    for line in read("docs/measured/choices.txt").splitlines():
        found = re.match(r"(digits|letter)[:,]", line)
        data = found[1] if found else data
        name, *numbers = re.split(r"\s{2,}", line)
        rows[data, name] = numbers
    quoted = re.findall(r'data-row="([^"]+)">(\w+): ([^<]+)<', read("docs/choosing.md"))
    assert len(quoted) > 5
    for name, data, text in quoted:
        numbers = re.findall(r"[\d.]+", text)
        assert numbers and set(numbers) <= set(rows[data, name]), (name, text)


def test_a_page_has_command_commit_and_output(tmp_path, monkeypatch, capsys):
    page = module("benchmarks/page.py")
    monkeypatch.setattr(page, "OUT", tmp_path)
    script = tmp_path / "script.py"
    script.write_text("import sys; print('\\n1  2 '); print('written to x'); sys.exit(1)")
    assert page.written("one", [str(script), "--full"]) is False  # a claim did not hold
    lines = (tmp_path / "one.txt").read_text().splitlines()
    assert lines[0] == f"$ python {script} --full" and lines[3:] == ["", "1  2"]
    script.write_text("print('skipped: no data')")
    assert page.written("two", [str(script)]) and not (tmp_path / "two.txt").exists()
    script.write_text("print('half of a table', flush=True)\nraise ValueError('broken')")
    assert not page.written("three", [str(script)]) and not (tmp_path / "three.txt").exists()
    assert "exit code 1" in (out := capsys.readouterr().out) and "broken" in out
    with pytest.raises(SystemExit, match="no page shows four"):
        page.main(["four"])


# -- clusters ----------------------------------------------------------------------------------------------
def test_the_kubernetes_job_fits_its_image():
    job, image = yaml.safe_load(read("examples/cluster/kubernetes.yaml")), read("examples/cluster/Dockerfile")
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")
    parts = job["spec"]["mpiReplicaSpecs"]
    (launcher,), (worker,) = (
        parts[name]["template"]["spec"]["containers"] for name in ("Launcher", "Worker")
    )
    assert launcher["image"] == worker["image"]
    processes = parts["Worker"]["replicas"] * job["spec"]["slotsPerWorker"]
    assert launcher["command"][:3] == ["mpiexec", "-n", str(processes)]
    (source, target), *_ = re.findall(r"^COPY (\S+) (\S+)$", image, flags=re.MULTILINE)
    assert launcher["command"][-1] == target and (ROOT / source).is_file()
    assert Path(worker["command"][0]).name == "sshd" and "openssh-server" in image
    assert "multimargin[mpi]" in image


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_slurm_script_starts_as_many_processes_as_slurm_gives(tmp_path):
    """With a stand-in for mpiexec beside a stand-in for Python, in place of a cluster."""
    for name in ("mpiexec", "python3"):
        (tmp_path / name).write_text('#!/bin/bash\necho "$(basename "$0") $*"\n')
        (tmp_path / name).chmod(0o755)
    script = ROOT / "examples" / "cluster" / "slurm.sh"
    done = subprocess.run(
        ["bash", script, "train.py"],
        env={"PATH": "/usr/bin:/bin", "SLURM_NTASKS": "3", "PYTHON": str(tmp_path / "python3")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"mpiexec -n 3 {tmp_path / 'python3'} -m mpi4py train.py\n"


# -- releases ----------------------------------------------------------------------------------------------
def test_the_workflow_runs_what_is_there():
    jobs = yaml.safe_load(read(".github/workflows/wheels.yml"))["jobs"]
    runs = "\n".join(str(step.get("run", "")) for job in jobs.values() for step in job["steps"])
    for path in re.findall(r"\.ci/\w+\.py", runs):
        assert (ROOT / path).is_file()
    for target in re.findall(r"make (\w+)", runs):
        assert re.search(rf"^{target}:", read("Makefile"), flags=re.MULTILINE)
    assert {need for job in jobs.values() for need in [job.get("needs")] if need} <= set(jobs)


@pytest.mark.skipif(not Path("/bin/sh").exists(), reason="there is no sh")
@pytest.mark.parametrize("compiler", [None, "cc", "g++", "clang"])
def test_the_workflow_sees_a_compiler(compiler, tmp_path):
    """By the shell of a container, which is not bash: there ``command -v`` looks at its first name only."""
    steps = yaml.safe_load(read(".github/workflows/wheels.yml"))["jobs"]["bare"]["steps"]
    (script,) = [step["run"] for step in steps if step.get("name") == "No compiler"]
    if compiler:
        (tmp_path / compiler).write_text("#!/bin/sh\n")
        (tmp_path / compiler).chmod(0o755)
    done = subprocess.run(["/bin/sh", "-e", "-c", script], env={"PATH": str(tmp_path)}, capture_output=True)
    assert (done.returncode != 0) == (compiler is not None)


def test_the_citation_is_of_this_version():
    citation, project = yaml.safe_load(read("CITATION.cff")), tomllib.loads(read("pyproject.toml"))["project"]
    assert citation["cff-version"] == "1.2.0" and citation["title"] and citation["authors"]
    assert citation["version"] == project["version"] and citation["license"] == project["license"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda p: p.stem
)
def test_issue_templates_are_forms(path):
    form = yaml.safe_load(path.read_text())
    assert form["name"] and form["description"]
    assert all(part["type"] == "textarea" and part["attributes"]["label"] for part in form["body"])


def test_the_chooser_of_issue_templates_names_where_else_to_go():
    links = yaml.safe_load(read(".github/ISSUE_TEMPLATE/config.yml"))["contact_links"]
    assert links  # the schema of the form allows no empty list
    assert all(link["name"] and link["about"] and link["url"].startswith("https://") for link in links)


def test_pythons_are_found_by_name(monkeypatch):
    wheels = module(".ci/wheels.py")
    monkeypatch.setenv("PYTHONS", sys.executable)
    assert wheels.find_pythons() == {sys.version_info[:2]: sys.executable}
    monkeypatch.setenv("PYTHONS", "no-such-python")
    assert wheels.find_pythons() == {}
    false = shutil.which("false")
    monkeypatch.setenv("PYTHONS", str(false))
    with pytest.raises(SystemExit, match="does not run"):
        wheels.find_pythons()
