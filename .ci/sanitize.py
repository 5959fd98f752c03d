"""Run tests of the native module under sanitizers: ASan and UBSan together, and TSan.

Each sanitizer gets a build of its own by Clang, which stays in the environment, so that a changed source
recompiles only what depends on it. It runs in a Python that has the sanitizer's runtime in it, a program of
one line.

    python .ci/sanitize.py                  # both; Debian: clang, libomp-dev, llvm, libclang-rt-14-dev
    python .ci/sanitize.py thread
    python .ci/sanitize.py address --tests tests/inner -k pair

TSan knows locks and atomics, but not how OpenMP's threads meet. The module tells it (in_team in
native/base/openmp_team.hpp), and LLVM's Archer, which stops when OpenMP's threads end, is switched off.
Before the tests, a small program with and without races shows that TSan reports these and nothing else.
Suppressions are in `sanitize/`: for libraries of others alone, each with its reason.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUPPRESSIONS = Path(__file__).with_name("sanitize")
SOURCE, TEAMS = SUPPRESSIONS / "python.cpp", SUPPRESSIONS / "teams.cpp"
FOLDER = Path(sys.prefix) / "sanitize"  # of the builds


@dataclass(frozen=True)
class Sanitizer:
    """How the module is built and run."""

    flags: str
    options: dict[str, str]  # variables
    tests: tuple[str, ...]
    calls: int  # broken calls of native functions
    starts: tuple[str, ...] = ()  # the command that starts Python


SANITIZERS = {
    "address": Sanitizer(
        "-fsanitize=address,undefined",
        {
            # Python keeps memory until it ends, which LSan calls leaks; `make soak` looks for real ones.
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
        (
            *("tests/native", "tests/inner", "tests/kernels", "tests/files", "tests/problems"),
            *("tests/engines/test_conformance.py", "tests/engines/test_conformance_moves.py"),
            *("tests/engines/test_class_descent.py", "tests/engines/test_kept_block.py"),
            *("tests/engines/test_leap.py", "tests/engines/test_proximal_newton.py"),
            *("tests/engines/test_lasting.py", "tests/engines/test_whole_steps.py"),
            *("tests/linear/test_linear_native.py", "tests/linear/test_descent.py"),
            *("tests/linear/test_proximal.py", "tests/linear/test_linear_stream.py"),
        ),
        100_000,
    ),
    "thread": Sanitizer(
        "-fsanitize=thread",
        {
            # Python, NumPy and SciPy are not built with TSan, which would see half of what they do.
            "TSAN_OPTIONS": f"ignore_noninstrumented_modules=1:suppressions={SUPPRESSIONS / 'thread.txt'}",
            "OMP_TOOL": "disabled",
            "OPENBLAS_NUM_THREADS": "1",
        },
        (
            *("tests/system/test_threads.py", "tests/inner/test_shared_descent.py"),
            *("tests/inner/test_whole_descent.py", "tests/inner/test_projected_gradient.py"),
            *("tests/engines/test_kernel_forms.py", "tests/engines/test_conformance.py"),
            *("tests/linear/test_linear_native.py", "tests/linear/test_linear_team.py"),
            *("tests/files/test_libsvm.py", "tests/native/test_machines_native.py"),
        ),
        20_000,
        ("setarch", platform.machine(), "--addr-no-randomize"),  # it needs certain parts of the addresses
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "names", nargs="*", choices=[[], *SANITIZERS], help="which sanitizers; all by default"
    )
    parser.add_argument(
        "--tests", nargs=argparse.REMAINDER, help="arguments for pytest instead of the usual ones"
    )
    args = parser.parse_args()
    said = {name: run(name, args.tests) for name in args.names or SANITIZERS}
    print(*(f"{name:<10} {text}" for name, text in said.items()), sep="\n")
    return int(any(not text.startswith("passed") for text in said.values()))


def run(name, tests):
    """Build and test; what became of it, in words."""
    sanitizer = SANITIZERS[name]
    if missing := [tool for tool in ("clang++", *sanitizer.starts[:1]) if shutil.which(tool) is None]:
        return f"left out: no {missing[0]}"
    module, python = built(name, sanitizer), launcher(name, sanitizer)
    reports = FOLDER / f"{name}-reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    own = {"PYTHONPATH": str(module), "MULTIMARGIN_SANITIZED": name}
    environment = os.environ | variables(sanitizer, reports / "report") | own
    commands = [["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *(tests or sanitizer.tests)]]
    if not tests:
        commands.append(["tests/native/fuzz_bindings.py", "--inputs", str(sanitizer.calls)])
    failed = name == "thread" and not sees_races(sanitizer)
    for command in commands:
        print(f"{name}:", *command, flush=True)
        done = subprocess.run([*sanitizer.starts, python, *command], cwd=ROOT, env=environment)
        failed += done.returncode != 0
    found = [path.read_text(errors="replace") for path in sorted(reports.iterdir())]
    print(*found, sep="\n")
    return f"{'FAILED' if failed or found else 'passed'}: {len(found)} reports of sanitizers"


def sees_races(sanitizer):
    """Whether TSan reports each race of a parallel region, and no region that is sound."""
    program = FOLDER / "teams"
    flags = ["-std=c++20", "-O1", "-fopenmp", f"-I{ROOT / 'src/multimargin/native'}", sanitizer.flags]
    subprocess.run(["clang++", *flags, TEAMS, "-o", program], check=True)
    said = {}
    for race in ("nowhere", "before", "after"):
        command = [*sanitizer.starts, program, race]
        done = subprocess.run(command, env=os.environ | sanitizer.options, capture_output=True, text=True)
        said[race] = done.stderr.count("WARNING: ThreadSanitizer: data race")
        if done.returncode not in (0, 66):  # 66: TSan's, after a report
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stderr}")
    print("reports of races in parallel regions:", said, flush=True)
    return said == {"nowhere": 0, "before": 1, "after": 1}


def variables(sanitizer, reports):
    """The environment of Python."""
    found = dict(sanitizer.options)
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        if name in found:
            found[name] += f":log_path={reports}:external_symbolizer_path={shutil.which('llvm-symbolizer')}"
    return found


def launcher(name, sanitizer):
    """A Python with the sanitizer's runtime, in the environment."""
    python = Path(sys.prefix) / "bin" / f"python-{name}"
    folder, version = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDVERSION")
    command = [
        "clang++",
        *sanitizer.flags.split(),
        f"-I{sysconfig.get_path('include')}",
        SOURCE,
        "-o",
        python,
    ]
    libraries = [f"-L{folder}", f"-lpython{version}", f"-Wl,-rpath,{folder}", "-Wl,--export-dynamic"]
    system = sysconfig.get_config_var("LIBS").split()
    subprocess.run([*command, *libraries, *system], check=True)
    return python


def built(name, sanitizer):
    """The folder with a package that was built with the sanitizer."""
    print(f"Building with {sanitizer.flags} (a few minutes the first time) ...", flush=True)
    target = FOLDER / name
    flags = f"{sanitizer.flags} -g -fno-omit-frame-pointer -DMULTIMARGIN_NO_CLONES"
    settings = {
        "build-dir": FOLDER / f"build-{name}",
        "install.strip": "false",
        "cmake.define.MULTIMARGIN_OPTIMIZATION": "-O1",
        "cmake.define.CMAKE_CXX_COMPILER": "clang++",
        "cmake.define.CMAKE_CXX_FLAGS": flags,
        "cmake.define.CMAKE_MODULE_LINKER_FLAGS": sanitizer.flags,
    }
    options = [f"-C{key}={value}" for key, value in settings.items()]
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-build-isolation",
        "--no-deps",
        *options,
    ]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run([*install, "--target", target, ROOT], check=True, env=os.environ | {"PATH": path})
    return target


if __name__ == "__main__":
    sys.exit(main())
