"""Damaged, foreign and hostile model files are refused; a save that fails or is killed loses nothing."""

import errno
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import textwrap
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from multimargin import KernelSVC, load
from multimargin.files import archive
from multimargin.files.tree import encode


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a small model file."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("whole") / "model.mm"
    KernelSVC().fit(rng.integers(0, 9, (12, 3), dtype=np.uint8), np.arange(12) % 3).save(path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mm"


def assert_refused(path, content, reason=""):
    path.write_bytes(content)
    for mmap in (False, True):
        with pytest.raises(ValueError, match=f"cannot be used: .*{reason}") as error:
            load(path, mmap=mmap)
        assert str(path) in str(error.value)
    assert path.read_bytes() == content


# -- damaged ---------------------------------------------------------------------------------------------
def test_truncated_files_are_refused(path, content):
    for length in [*range(200), *range(200, len(content), 97), len(content) - 1]:
        assert_refused(path, content[:length])


def test_a_changed_bit_anywhere_is_noticed(path, content):
    """Every region: headers, padding, document, arrays, directory."""
    chance = random.Random(1)
    places = {chance.randrange(len(content)) for _ in range(400)} | set(range(100))
    places |= set(range(len(content) - 400, len(content)))
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        assert_refused(path, bytes(changed))


def test_bytes_before_or_behind_are_noticed(path, content):
    assert_refused(path, content + b"x")
    assert_refused(path, b"x" + content)
    assert_refused(path, content + content)


def test_without_check_only_the_arrays_are_trusted(path, content):
    place = content.index(b"NUMPY") + 140  # in the values of the first array
    changed = bytearray(content)
    changed[place] ^= 1
    path.write_bytes(changed)
    with pytest.raises(ValueError, match="checksum of 'arrays/"):
        load(path)
    load(path, check=False)


# -- foreign ---------------------------------------------------------------------------------------------
def zipped(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, text in members.items():
            made.writestr(name, text)
    return file.getvalue()


@pytest.mark.parametrize(
    ("foreign", "reason"),
    [
        (b"", "it is empty"),
        (b"1 1:0.5 2:3\n", "not a model file of multimargin"),
        (b"svm_type c_svc\nkernel_type rbf\n", "a model of LIBSVM"),
        (b"\x80\x04\x95", "seems to be a pickle"),
        (zipped(**{"a.txt": "hello"}), "a zip file, but not one that multimargin has written"),
        (zipped(**{"model.json": "{}"}), "a zip file, but not one that multimargin has written"),
    ],
)
def test_foreign_files_are_named(path, foreign, reason):
    assert_refused(path, foreign, reason)


def test_a_missing_file_and_a_directory_are_not_models(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.mm")
    with pytest.raises(OSError):
        load(tmp_path)


def test_a_later_version_is_named(path, content, monkeypatch):
    monkeypatch.setattr(archive, "VERSION", 7)
    model_of(content, path).save(path)
    later = path.read_bytes()
    monkeypatch.undo()
    assert_refused(path, later, "format version 7, .* update multimargin")


def model_of(content, path):
    path.write_bytes(content)
    return load(path)


# -- hostile ---------------------------------------------------------------------------------------------
def repacked(content, change=lambda members: None, **options):
    """The same members in a zip file by Python's own writer."""
    members = {}
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = {info.filename: old.read(info) for info in old.infolist()}
    change(members)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as new:
        for name, text in members.items():
            new.writestr(name, text)
    return file.getvalue()


def test_a_zip_bomb_is_refused_before_it_grows(path, content):
    bomb = repacked(
        content,
        lambda members: members.update({"arrays/_support.npy": bytes(1 << 26)}),
        compression=zipfile.ZIP_DEFLATED,
    )
    assert len(bomb) < 1 << 20
    assert_refused(path, bomb, "compressed or encrypted")


def test_sizes_that_lie_are_refused(path, content):
    where = content.index(b"PK\1\2") + 20
    lying = content[:where] + (1 << 30).to_bytes(4, "little") * 2 + content[where + 8 :]
    assert_refused(path, lying)


@pytest.mark.parametrize(
    "name", ["../evil.npy", "/etc/evil.npy", "arrays/../../evil.npy", "arrays/a b.npy", "x"]
)
def test_odd_names_are_refused(path, content, name):
    assert_refused(
        path, repacked(content, lambda m: m.update({name: b"x"})), "members that a model file does not"
    )
    assert not (path.parent.parent / "evil.npy").exists()


def written(path, document, arrays):
    """A file with right checksums whose content is anything."""
    archive.write(path, document, arrays)
    return path.read_bytes()


def parts(content, path):
    path.write_bytes(content)
    document, arrays, _ = archive.read(path)
    return {k: v for k, v in document.items() if k not in ("format", "version")}, arrays


def test_arrays_of_objects_are_refused(path, content, monkeypatch):
    class Evil:
        def __reduce__(self):
            return (os.system, ("touch evil",))

    file = io.BytesIO()
    np.save(file, np.array([Evil()], dtype=object), allow_pickle=True)
    monkeypatch.setattr(archive, "_npy", lambda array: (file.getvalue(), memoryview(b"")))
    document, arrays = parts(content, path)
    archive.write(path, document, arrays)
    assert_refused(path, path.read_bytes(), "has Python objects")


def nested(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d, a: d.pop("state"), "'state'"),
        (lambda d, a: d.update(estimator="os.system"), "'os.system' is not known"),
        (lambda d, a: d["state"].pop("dual_coef_"), "dual_coef_"),
        (lambda d, a: a.update(dual_coef_=a["dual_coef_"][:2]), "dual_coef_ does not fit"),
        (lambda d, a: a.update(dual_coef_=a["dual_coef_"] * np.nan), "dual_coef_ does not fit"),
        (lambda d, a: a.update(dual_coef_=a["dual_coef_"].astype("f4")), "dual_coef_ does not fit"),
        (lambda d, a: a.update(_support=a["_support"][:, :1]), "support vectors does not fit"),
        (lambda d, a: a.update(_support=a["_support"].astype("U1")), "support vectors does not fit"),
        (lambda d, a: a.update(support_=a["support_"] + 10**6), "support_ does not fit"),
        (lambda d, a: a.update(support_=a["support_"][::-1]), "support_ does not fit"),
        (lambda d, a: a.update(classes_=a["classes_"][:1]), "does not fit"),
        (lambda d, a: a.update(_labels=a["_labels"] + 50), "labels does not fit"),
        (lambda d, a: d["state"].update(n_features_in_="many"), "many"),
        (lambda d, a: d["state"].update(_kernel=3), "kernel does not fit"),
        (lambda d, a: d["state"]["_kernel"].update({"<multimargin object>": "CallableKernel"}), ""),
        (lambda d, a: d["state"]["_kernel"].update({"<multimargin object>": "Popen"}), "Popen"),
        (lambda d, a: d["state"]["_kernel"].update(gamma="scale"), "gamma does not fit"),
        (lambda d, a: d["state"].update(extra=nested(900)), "nested too deeply|"),
        (lambda d, a: d["state"].update(n_threads=[1]), "n_threads"),
        (
            lambda d, a: d["state"].update(
                extra={
                    "<multimargin object>": "csr_array",
                    "parts": {"!": "tuple", "items": [[1.0], [0], [0, 10**30]]},
                    "shape": {"!": "tuple", "items": [1, 1]},
                }
            ),
            "too large",
        ),
        (
            lambda d, a: d["state"].update(
                extra={"!": "masked", "parts": [{"!": "array", "name": n} for n in list(a)[:2]]}
            ),
            "mask of another shape",
        ),
        (
            lambda d, a: d["state"].update(
                _costs={
                    "!": "constant",
                    "dtype": "f8",
                    "length": 10**12,
                    "parts": [{"!": "array", "name": "_costs"}],
                }
            ),
            "far larger than the file",
        ),
        (
            lambda d, a: d["state"].update(_costs={"!": "pickle", "parts": [], "dtype": "f8", "length": 0}),
            "unknown form",
        ),
    ],
)
def test_content_that_does_not_fit_is_refused(path, content, change, reason):
    document, arrays = parts(content, path)
    change(document, arrays)
    assert_refused(path, written(path, document, arrays), reason)


@pytest.mark.parametrize("version", [b"Infinity", b"NaN", b"1e999", b"-1", b'"x"', b"[]"])
def test_a_version_that_is_no_number_is_refused(path, version):
    text = b'{"format": "multimargin model", "version": ' + version + b"}"
    with pytest.raises(ValueError, match="cannot be used"):
        archive._document(path, text)


def test_sparse_parts_that_point_outside_are_refused(path):
    from scipy import sparse

    rng = np.random.default_rng(0)
    model = KernelSVC().fit(sparse.csr_array(rng.random((12, 3))), np.arange(12) % 3)
    model._support.indices[0] = 10**6
    model.save(path)
    assert_refused(path, path.read_bytes(), "not that of a model")


# -- a save that fails ------------------------------------------------------------------------------------
def test_a_full_disk_keeps_the_old_model(tmp_path, content):
    small = tmp_path / "small"
    small.mkdir()
    mount = shutil.which("mount")
    if os.name != "posix" or os.geteuid() != 0 or mount is None:
        pytest.skip("mounting a small file system needs root")
    mounted = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        path = small / "model.mm"
        path.write_bytes(content)
        big = KernelSVC().fit(np.random.default_rng(0).random((400, 60)), np.arange(400) % 4)
        with pytest.raises(OSError) as error:
            big.save(path)
        assert error.value.errno == errno.ENOSPC
        assert path.read_bytes() == content
        assert os.listdir(small) == [path.name]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_limit_of_file_sizes_keeps_the_old_model(path, content):
    resource = pytest.importorskip("resource", reason="limits of file sizes are a matter of POSIX")
    path.write_bytes(content)
    script = f"""
        import resource, signal, sys
        import numpy as np
        from multimargin import KernelSVC
        model = KernelSVC().fit(np.random.default_rng(0).random((400, 60)), np.arange(400) % 4)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, {resource.getrlimit(resource.RLIMIT_FSIZE)[1]}))
        try:
            model.save(sys.argv[1])
        except OSError as error:
            print(error.errno)
    """
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), path], capture_output=True, text=True
    )
    assert found.stdout.strip() == str(errno.EFBIG), found.stderr
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name != "posix", reason="directories are made read-only in the way of POSIX")
def test_a_read_only_directory_keeps_the_old_model(content, monkeypatch):
    # Another user may be unable to read the installed package, and so its version.
    monkeypatch.setattr("multimargin.estimators.storing.version", lambda name: "1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mm"
        model = model_of(content, path)
        os.chmod(folder, 0o555)
        try:
            if os.geteuid() == 0:  # which may write anywhere
                assert os.waitstatus_to_exitcode(os.waitpid(saved_by_nobody(model, path), 0)[1]) == 0
            else:
                with pytest.raises(PermissionError, match="cannot be written"):
                    model.save(path)
        finally:
            os.chmod(folder, 0o755)
        assert path.read_bytes() == content


def saved_by_nobody(model, path):
    """The number of a process that tries to save as a user without rights, and ends with 0 if it may not."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(65534)
            model.save(path)
        except PermissionError as error:
            os._exit(0 if "cannot be written" in str(error) else 2)
        finally:
            os._exit(1)
    return pid


KILLS = """
    import os, random, signal, sys, time
    import numpy as np
    from multimargin import KernelSVC, load
    path, chance, torn, seen = sys.argv[1], random.Random(1), 0, set()
    X, y = np.random.default_rng(0).random((300, 400)), np.arange(300) % 5
    models = [KernelSVC(C=C, n_threads=1).fit(X, y) for C in (1.0, 2.0)]
    models[0].save(path)
    start = time.perf_counter()
    models[0].save(path)
    seconds = time.perf_counter() - start
    for kill in range(100):
        pid = os.fork()
        if pid == 0:
            while True:
                models[chance.randrange(2)].save(path)
        chance.random()
        time.sleep(chance.random() * 3 * seconds)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        torn += len(os.listdir(os.path.dirname(path))) > 1
        back = load(path)  # whole, or an error ends this
        model = next(m for m in models if m.C == back.C)
        assert back.dual_coef_.tobytes() == model.dual_coef_.tobytes()
        seen.add(back.C)
    models[0].save(path)
    print(torn, len(seen), len(os.listdir(os.path.dirname(path))))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the saves are forked")
def test_a_hundred_kills_during_save_leave_a_whole_model(path):
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLS), path], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    torn, seen, left = map(int, found.stdout.split())
    assert torn > 5  # that many were killed while they wrote
    assert seen == 2
    assert left == 1  # what they left was removed


def test_the_checksum_in_the_directory_is_that_of_the_content(content):
    with zipfile.ZipFile(io.BytesIO(content)) as made:
        for info in made.infolist():
            assert info.CRC == zlib.crc32(made.read(info))
        assert json.loads(made.read("model.json"))["arrays"].keys() == set(made.namelist()) - {"model.json"}


def test_an_object_in_the_tree_is_named():
    with pytest.raises(TypeError, match=r"deep\.0\.x is an object of class builtins.object"):
        encode({"state": {"deep": [{"x": object()}]}})
