# What a newcomer can do. `make help` prints it; everything below needs only git, make and Python 3.11+.

SHELL := /bin/bash
.DEFAULT_GOAL := help
KUBE ?= 1.36
ROWS ?=
SEED := $(or $(SEED),$(shell date +%s))
export KUBE

VENV := .venv
BIN := $(VENV)/bin
# Nothing of the caller's Python may leak in: what runs is what the lock files name.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX PYTHONDONTWRITEBYTECODE
# Trust what this machine trusts, as pip does: many networks have a certificate authority of their own.
export UV_SYSTEM_CERTS ?= true

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { command -v $$p; break; }; done)
SOAK := --hypothesis-profile=soak --hypothesis-seed=$(SEED) --timeout=3600
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url
# Bytecode at once: a command of ours starts in half a second instead of one.
INSTALL := $(BIN)/uv pip sync --quiet --require-hashes --compile-bytecode --python $(BIN)/python
OURS := $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --python $(BIN)/python -e . && $(BIN)/python -m compileall -q src

.PHONY: help up test test-kubernetes soak check check-types check-rest generate bench kube-binaries lock clean

help: ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

up: $(VENV)/ready-to-run ## run applecart until Ctrl-C (options: UP='--macs 10')
	@$(BIN)/applecart up $(UP)

test: check ## check, then every test that needs no Kubernetes
	$(BIN)/pytest -n auto --dist worksteal -m "not kubernetes"

test-kubernetes: $(VENV)/ready-to-develop kube-binaries ## tests on a real kube-apiserver (KUBE=1.33: the oldest)
	$(BIN)/pytest -n 2 -m kubernetes

soak: $(VENV)/ready-to-develop kube-binaries ## every test at full length (SEED=n repeats one)
	failed=0; \
	$(BIN)/pytest -n auto --dist worksteal -m "not kubernetes" $(SOAK) || failed=1; \
	$(BIN)/pytest -n 2 -m kubernetes $(SOAK) || failed=1; \
	exit $$failed

check: $(VENV)/ready-to-develop ## ruff, mypy --strict, import layers, generated files
	@$(MAKE) --no-print-directory -j2 check-types check-rest $(VENV)/tests-compiled

check-types:
	$(BIN)/mypy

check-rest:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m applecart.cli.generate --check

# Once in a fresh clone, beside mypy, which keeps one core busy: later, every worker of pytest would compile every test.
$(VENV)/tests-compiled:
	@$(BIN)/pytest --collect-only -p no:xdist >/dev/null 2>&1; touch $@

generate: $(VENV)/ready-to-develop ## write the CRDs and reference pages again from the types
	$(BIN)/python -m applecart.cli.generate

bench: $(VENV)/ready-to-develop ## speed and memory against a peer (ROWS=pattern for some)
	$(BIN)/python -m bench $(if $(ROWS),--rows '$(ROWS)')

kube-binaries: $(VENV)/ready-to-develop ## build etcd and kube-apiserver once, into a cache
	@$(BIN)/python tests/kubernetes/build.py --kube $(KUBE)

lock: $(VENV)/uv ## choose dependency versions anew (requirements/*.lock)
	$(COMPILE) --upgrade requirements/uv.in -o requirements/uv.lock
	$(COMPILE) --upgrade pyproject.toml requirements/build.in -o requirements/run.lock
	$(COMPILE) --upgrade pyproject.toml --group dev -c requirements/run.lock requirements/uv.in requirements/build.in -o requirements/dev.lock

clean: ## remove what the commands above made in this folder
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# One make at a time makes the environment; another one waits, and finds it made.
ifndef ALONE
$(VENV)/ready-to-run: requirements/run.lock pyproject.toml
$(VENV)/ready-to-develop: requirements/dev.lock pyproject.toml
$(VENV)/uv $(VENV)/ready-to-run $(VENV)/ready-to-develop: requirements/uv.lock
	@test -n "$(PYTHON)" || { echo "applecart needs Python 3.11 or newer with the venv module; none of python3.13, python3.12, python3.11, python3 is." >&2; exit 1; }
	@mkdir -p $(VENV)
	@$(PYTHON) tools/alone.py $(VENV)/lock $(MAKE) -s --no-print-directory ALONE=1 $@
else
$(VENV)/uv: requirements/uv.lock
	@test -x $(BIN)/python || { echo "creating $(VENV) with $(PYTHON)"; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null # uv's sync removes pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	@touch $@

$(VENV)/ready-to-run: requirements/run.lock pyproject.toml $(VENV)/uv
	@echo "installing what applecart needs to run (requirements/run.lock)"
	@test -e $(VENV)/ready-to-develop || $(BIN)/uv pip install --quiet --require-hashes --compile-bytecode --python $(BIN)/python -r requirements/run.lock
	@$(OURS)
	@touch $@

$(VENV)/ready-to-develop: requirements/dev.lock pyproject.toml $(VENV)/uv
	@echo "installing what applecart's tests need (requirements/dev.lock)"
	@rm -f $@ $(VENV)/ready-to-run # until ours is there again, which a sync removes
	@$(INSTALL) requirements/dev.lock
	@$(OURS)
	@touch $@ $(VENV)/ready-to-run
endif
