# Everything runs in an environment of its own: $(VENV), made with $(PYTHON).
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= logical
BENCH ?= $(addprefix benchmarks/,peers/multiclass.py peers/robust.py peers/grid.py peers/small.py \
	checks/scaling.py checks/prediction.py checks/memory.py checks/parsing.py)
LINEAR := benchmarks/peers/linear.py benchmarks/checks/linear_scale.py
MPI := benchmarks/checks/mpi.py benchmarks/checks/cost_model.py
PAPERS := $(addprefix benchmarks/papers/,accuracies.py niu_yuan_table2.py crammer_singer_figures.py \
	blondel_table2.py blondel_figures.py msvmpack_table2.py msvmpack_table3.py msvmpack_table4.py vpdt_tables.py \
	niu_yuan_figure1.py vpdt_table6.py)

BIN := $(VENV)/bin
TOOLS := $(VENV)/.tools-ready
PACKAGE := $(VENV)/.package-installed
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*') CMakeLists.txt pyproject.toml README.md LICENSE

.PHONY: demo test test-fast test-cluster bench bench-linear bench-machines bench-binary bench-mpi papers peers regression fuzz sanitize faults soak torture lint format docs benchmarks-page wheels variants clean

demo: $(PACKAGE)
	@echo "Training on handwritten digits ..."
	@$(BIN)/python examples/demo.py

# Every core runs tests, whatever their number: the workers share them out as they go.
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal

test: $(PACKAGE)
	@echo "Running all tests (a few minutes) ..."
	@$(PYTEST)

# In less than a minute: all but the tests marked "slow".
test-fast: $(PACKAGE)
	@echo "Running the fast tests (less than a minute) ..."
	@$(PYTEST) -m "not slow"

# Fits across hosts in network namespaces, over TCP; needs root, and says so otherwise.
test-cluster: $(PACKAGE)
	@echo "Fitting across hosts (about a minute) ..."
	@$(BIN)/python tests/cluster/run.py

# Runs every script, and fails in the end if one missed a bar.
run_all = missed=0; for script in $(1); do echo "== $$script"; $(BIN)/python $$script || missed=1; done; exit $$missed

bench: $(PACKAGE)
	$(call run_all,$(BENCH))

bench-linear: $(PACKAGE)
	$(call run_all,$(LINEAR))

bench-machines: $(PACKAGE)
	$(call run_all,benchmarks/peers/machines.py)

bench-binary: $(PACKAGE)
	$(call run_all,benchmarks/peers/binary.py)

bench-mpi: $(PACKAGE)
	$(call run_all,$(MPI))

papers: $(PACKAGE)
	$(call run_all,$(PAPERS))

peers: $(PACKAGE)
	$(BIN)/python benchmarks/workers/environments.py

# A million damaged data files and texts, as many broken calls of native functions, and 100,000 damaged models and
# checkpoints; FIRST=number goes on from there.
fuzz: $(PACKAGE)
	$(BIN)/python tests/native/fuzz_readers.py --inputs $(or $(INPUTS),1000000)
	$(BIN)/python tests/files/fuzz_stored.py --inputs $(or $(INPUTS),100000) --first $(or $(FIRST),0)
	$(BIN)/python tests/files/fuzz.py --inputs $(or $(INPUTS),1000000) --first $(or $(FIRST),0)
	$(BIN)/python tests/native/fuzz_bindings.py --inputs $(or $(INPUTS),1000000) --first $(or $(FIRST),0)

# A thousand adversarial fits, each in a process of its own; CASES=number, FIRST=number, and OPTIONS="--show NUMBER".
torture: $(PACKAGE)
	$(BIN)/python tests/torture/run.py --cases $(or $(CASES),1000) --first $(or $(FIRST),0) $(OPTIONS)

# The native tests under ASan, UBSan and TSan, in builds of their own; needs Clang and its OpenMP.
sanitize: $(PACKAGE)
	$(BIN)/python .ci/sanitize.py $(SANITIZER)

# Memory, disks, clocks, signals, processes and kills: what goes wrong on machines.
FAULTS := disk kills clock signals processes determinism memory
faults: $(PACKAGE)
	$(call run_all,$(FAULTS:%=tests/faults/%.py))

# An hour of random fits, with flat memory; SECONDS=number shortens it.
soak: $(PACKAGE)
	$(BIN)/python tests/faults/soak.py --seconds $(or $(SECONDS),3600)

# BASE=commit and HEAD=commit name other commits than 1067630 and the working tree; OPTIONS=--counts and the like.
regression: $(PACKAGE)
	$(BIN)/python benchmarks/checks/regression.py $(or $(BASE),1067630) $(HEAD) $(OPTIONS)

lint: $(PACKAGE)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(PACKAGE)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, in docs/_build/html: warnings are errors, every internal link is followed, every example of the gallery runs.
DOCS := $(VENV)/.docs-ready
docs: $(PACKAGE) $(DOCS)
	@echo "Running the examples and writing the pages (a minute or two) ..."
	@$(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	@$(BIN)/python docs/check_links.py docs/_build/html

$(DOCS): pyproject.toml
	@echo "Installing what the documentation needs ..."
	@$(BIN)/python -c "import tomllib; print(*(name for name in tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'] if not name.startswith('multimargin')), sep='\n')" > $(VENV)/docs-requirements.txt
	@$(BIN)/pip install --quiet --requirement $(VENV)/docs-requirements.txt
	@touch $@

# What the pages "benchmarks" and "papers" of the site show; SCRIPTS="choices ..." runs some of them.
benchmarks-page: $(PACKAGE)
	$(BIN)/python benchmarks/page.py $(SCRIPTS)

# The source archive and wheels for the Pythons at hand (PYTHONS="python3.12 ..." names them), each tried in a
# fresh environment without a compiler; in dist/.
wheels:
	$(PYTHON) .ci/wheels.py

# Other compilers, a build without OpenMP, and emulated processors.
variants:
	$(PYTHON) .ci/variants.py

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/reference .pytest_cache .hypothesis .mypy_cache .ruff_cache

# The build tools live in the environment, so that a changed source recompiles only what depends on it.
# Each step says what it is doing, because pip says nothing for a minute and a half.
$(TOOLS): pyproject.toml
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@echo "Installing the build tools ..."
	@$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], 'cmake>=3.26', 'ninja', sep='\n')" > $(VENV)/build-requirements.txt
	@$(BIN)/pip install --quiet --requirement $(VENV)/build-requirements.txt
	@touch $@

$(PACKAGE): $(TOOLS) $(SOURCES)
	@echo "Compiling the native module (the first time about a minute and a half) and installing what it needs ..."
	@$(BIN)/pip install --quiet --no-build-isolation --config-settings=build-dir=$(VENV)/build ".[dev]"
	@touch $@
