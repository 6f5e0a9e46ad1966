# make play       set up, build the page, serve it on localhost and open it
# make test       set up, then lint, types, layers, unit tests and browser tests
# make test-more  thorough unit tests and the documentation
# make test-all   all that make test leaves out: test-more, and thorough browser tests
# make docs       build the documentation into docs/_build/html
# make wheels     the packages mlcweb (sdist and wheel) and mlcweb-page, into dist
#
# Python >= 3.11 and Node are expected; everything else is fetched into .venv and web/node_modules.
# Files named *.stamp record what is done, so a second run only does what has changed.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help play test test-more test-all check-python check-page docs wheels
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
PORT ?= 8000
TORCH ?= torch==2.13.0
PY := .venv/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -qq
UNIT_TESTS := $(PY) -m pytest tests -n auto --dist worksteal -p randomly
PAGE_TESTS := $(PY) -m pytest e2e -n 2 --dist worksteal -p randomly
NPM := cd web && npm --no-audit --no-fund --no-update-notifier --loglevel=error

PACKAGE := $(shell find mlcweb -name '*.py' -o -name '*.js') pyproject.toml README.md LICENSE
PAGE := $(shell find web -path web/node_modules -prune -o -path web/dist -prune \
	-o -path web/public/pyodide -prune -o -path web/public/wheels -prune -o -type f -print)

help:
	@sed -n 's/^# make/make/p' Makefile

play: web/dist/index.html
	@$(PY) -m mlcweb serve --port $(PORT) --open

test: .venv/test.stamp .venv-oracle/stamp web/dist/index.html
	@$(PY) e2e/chromium.py
	@$(MAKE) -j2 --output-sync=target check-python check-page
	$(UNIT_TESTS) --durations=25
	$(PAGE_TESTS) --durations=25

check-python:
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/lint-imports --no-logo
	.venv/bin/pyright --pythonpath $(PY)

check-page:
	$(NPM) run lint
	$(NPM) run typecheck
	$(NPM) test

test-more: .venv/test-all.stamp .venv-oracle/stamp web/dist/index.html docs
	$(UNIT_TESTS) -m "thorough or hypothesis" --hypothesis-profile=thorough --durations=25

test-all: test-more
	@$(PY) e2e/chromium.py
	@$(PY) e2e/browsers/install.py
	$(PAGE_TESTS) -m thorough --durations=25

wheels: web/dist/index.html
	$(PY) -m build --outdir dist .
	$(PY) -m build --wheel --outdir dist web

docs: .venv/docs.stamp
	$(PY) -m sphinx -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "the docs are in docs/_build/html/index.html"

# Python: one environment; `make play` needs little of it, `make test` more, `make test-all` all.

.venv/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed (python3)."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; PYTHON=... names another one."; exit 1; }
	@$(PYTHON) -m venv .venv \
		|| { rm -rf .venv; echo "Python's venv module is needed (Debian: python3-venv)."; exit 1; }

.venv/play.stamp: pyproject.toml | .venv/bin/python
	@echo "installing Python packages"
	@$(PIP) install --editable ".[cli,native]" build hatchling
	@touch $@

.venv/test.stamp: pyproject.toml .venv/play.stamp
	@echo "installing Python packages for tests"
	@$(PIP) install --editable ".[dev]"
	@touch $@

# PyTorch in a version of which there may be a build for CPUs alone, which is a tenth of the size;
# TORCH=... names another one. XGBoost without what it fetches for GPUs.
.venv/test-all.stamp: pyproject.toml .venv/test.stamp
	@echo "installing PyTorch, XGBoost and compilers for GPUs for tests"
	@$(PIP) install "$(TORCH)" || echo "$(TORCH) is not there: the newest is taken"
	@$(PIP) install --editable ".[torch]" scipy
	@$(PIP) install --no-deps "xgboost>=2"
	@$(PIP) install --editable ".[gpu-checks]" || echo "source for GPUs is not checked by compilers"
	@touch $@

.venv/docs.stamp: pyproject.toml .venv/play.stamp
	@echo "installing Python packages for the docs"
	@$(PIP) install --editable ".[docs]"
	@touch $@

# A real TVM, for tests that compare with it; they are skipped where it cannot be had.

.venv-oracle/stamp: pyproject.toml | .venv/bin/python
	@echo "installing a real TVM to compare with"
	@$(PYTHON) -m venv .venv-oracle \
		&& .venv-oracle/bin/python -m pip --disable-pip-version-check -q --retries 1 \
			install --only-binary apache-tvm ".[oracle]" >.venv-oracle/log 2>&1 \
		&& .venv-oracle/bin/python -c "import tvm.tirx" 2>>.venv-oracle/log && touch $@ \
		|| echo "there is none for this machine (.venv-oracle/log): tests that ask it are skipped"

# The page: npm packages, Pyodide by version and hash, this package as a wheel, then the bundle.

web/node_modules/.stamp: web/package.json web/package-lock.json
	@command -v npm >/dev/null || { echo "Node.js with npm is needed (Debian: nodejs npm)."; exit 1; }
	@echo "installing npm packages"
	@$(NPM) ci
	@touch $@

web/dist/index.html: web/node_modules/.stamp $(PACKAGE) $(PAGE) | .venv/play.stamp
	@echo "building the page"
	@$(NPM) run build
	@touch $@
