# One door: everything that is built, checked or tested is a target here. `make` lists them.
# Needs Python 3.11 or later, git and bash. Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PROTOS := $(wildcard proto/v*/*.proto)
BENCHES := $(wildcard bench/*.py)
WORKLOADS := $(wildcard simulations/scenarios/full/*.yaml)

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lint fmt fmt-check type imports proto proto-check package-check bench sim sim-full ci install dev clean

unexport PYTHONPATH PYTHONHOME PYTHONOPTIMIZE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: install ## run the demo: region, allocators, three edges, moving traffic (ARGS="--seconds 20 --json")
	@$(BIN)/apportion demo $(ARGS)

test: dev ## run the tests (ARGS="-k bucket -x")
	@$(BIN)/pytest $(ARGS)

lint: dev ## ruff: style and likely mistakes
	@$(BIN)/ruff check .

fmt: dev ## format, sort imports, apply the safe fixes
	@$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format .

fmt-check: dev ## fail if `make fmt` would change the format
	@$(BIN)/ruff format --check .

type: dev ## mypy, strict
	@$(BIN)/mypy src tests $(if $(BENCHES),bench)

imports: dev ## the layers and what the pure folders may not see
	@PYTHONPATH=src $(BIN)/lint-imports

proto: dev ## regenerate the code of proto/v1/*.proto
	@.ci/proto write $(PROTOS)

proto-check: dev ## fail if the committed generated code is not what `make proto` writes
	@.ci/proto check $(PROTOS)

package-check: dev ## sdist, wheel from it, install elsewhere, import every module
	@.ci/package

bench: dev ## run every benchmark
	@for script in $(BENCHES); do echo "== $$script"; $(BIN)/python "$$script"; done

sim: dev ## the simulator's scenarios in turn with 50 seeds (ARGS="--seed 1000" for other ones)
	@$(BIN)/apportion simulate --seeds 50 --in-turn --jobs 2 $(ARGS)

sim-full: dev ## fifty edges, 1,000/s, the eight workloads of docs/performance.md in each mode (ARGS="--seed 7")
	@$(BIN)/apportion simulate $(WORKLOADS:%=--scenario %) --compare enforce --seed 1 --jobs 2 $(ARGS)

ci: lint fmt-check type imports proto-check test sim package-check ## everything, as CI runs it

# ------------------------------------------------------------------------------------------------------------------------- set-up

install: $(VENV)/installed ## create .venv with the package, editable
dev: $(VENV)/installed-dev ## and with what the tests and checks need

# A virtual environment keeps its own path and its interpreter's: in a checkout that was moved, or without that interpreter, start over.
$(shell [ ! -e $(VENV)/made ] || { [ "$$(cat $(VENV)/made)" = "$(CURDIR)" ] && [ -x $(BIN)/python ]; } || rm -f $(VENV)/made $(VENV)/installed*)

$(VENV)/made:
	@command -v "$(PYTHON)" >/dev/null || { echo "error: no $(PYTHON) here; name an interpreter: make PYTHON=python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: apportion needs Python 3.11 or later, and" \
		"$(PYTHON) is $$("$(PYTHON)" -V 2>&1); name another: make PYTHON=python3.12" >&2; exit 1; }
	@echo "making $(VENV) with $$("$(PYTHON)" -V)"
	@"$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); echo "error: $(PYTHON) cannot make a virtual environment; some systems" \
		"have its venv module in a package of its own (python3-venv)" >&2; exit 1; }
	@echo "$(CURDIR)" > $@

$(VENV)/installed: pyproject.toml setup.py constraints.txt | $(VENV)/made
	@echo "installing apportion and its libraries into $(VENV)"
	@$(PIP) install --constraint constraints.txt setuptools
	@$(PIP) install --constraint constraints.txt --no-build-isolation --editable .
	@touch $@

$(VENV)/installed-dev: requirements-dev.txt $(VENV)/installed
	@echo "installing the development tools into $(VENV)"
	@$(PIP) install --constraint constraints.txt --requirement requirements-dev.txt
	@touch $@

clean: ## remove .venv and every cache
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
