"""Run libFuzzer on the native readers of text, with ASan and UBSan; part of `make fuzz`.

    python tests/native/fuzz_readers.py --inputs 10000000
    python tests/native/fuzz_readers.py --keep folder      # what was found last, for the next time
    python tests/native/fuzz_readers.py --smallest folder  # write readers.corpus anew from such a folder

It needs Clang with libFuzzer (Debian: clang, libclang-rt-14-dev). The driver is fuzz_readers.cpp.
readers.corpus has inputs that reach every branch that was found so far, one a line in base64; readers.dict
has words of the formats.
"""

import argparse
import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS, WORDS = HERE / "readers.corpus", HERE / "readers.dict"
NATIVE = HERE.parents[1] / "src" / "multimargin" / "native"
FLAGS = ("-std=c++20", "-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
LONGEST = 300  # bytes of an input


def build(folder):
    """The path of the driver; None if there is no Clang with libFuzzer."""
    driver, empty = folder / "driver", folder / "empty.cpp"
    if shutil.which("clang++") is None:
        return None
    empty.write_text(
        'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    )
    command = ["clang++", *FLAGS, f"-I{NATIVE}", "-o", driver]
    if subprocess.run([*command, empty], capture_output=True).returncode:
        return None
    subprocess.run([*command, HERE / "fuzz_readers.cpp"], check=True)
    return driver


def unpack(folder):
    """Write the inputs of the corpus as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, line in enumerate(CORPUS.read_text().splitlines()):
        (folder / f"kept-{number}").write_bytes(base64.b64decode(line))


def pack(driver, folder):
    """Write the corpus: the fewest inputs of a folder that reach as much as all of them."""
    with tempfile.TemporaryDirectory() as fewest:
        subprocess.run([driver, "-set_cover_merge=1", "-max_len=120", fewest, folder], check=True)
        lines = sorted(base64.b64encode(path.read_bytes()).decode() for path in Path(fewest).iterdir())
    CORPUS.write_text("".join(f"{line}\n" for line in lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="a folder of inputs that is read and added to")
    parser.add_argument("--smallest", type=Path, help="write the corpus from this folder")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        driver = build(Path(scratch))
        if driver is None:
            print("left out: no Clang with libFuzzer")
            return 1
        if args.smallest:
            pack(driver, args.smallest)
            return 0
        corpus = args.keep or Path(scratch) / "corpus"
        unpack(corpus)
        # Slow inputs are written to the prefix; one that crashes is printed too.
        options = [f"-runs={args.inputs}", f"-max_len={LONGEST}", f"-dict={WORDS}", "-timeout=60"]
        options.append(f"-artifact_prefix={scratch}/")
        done = subprocess.run(
            [driver, *options, "-print_final_stats=1", corpus], capture_output=True, text=True
        )
    lines = done.stderr.splitlines()
    print(
        *(lines[-60:] if done.returncode else [line for line in lines if line.startswith("stat::")]), sep="\n"
    )
    print(f"{args.inputs:,} inputs, {'a crash' if done.returncode else 'no crash'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
