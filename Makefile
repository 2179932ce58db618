# Each target does its own set-up: `make run` and `make test` are all that a fresh machine needs.
# Written for any make from 3.81 on, and any POSIX shell.

.PHONY: help run announced watch package setup fetched test lint types contracts extension unit pythons \
	on-one-python codex e2e \
	e2e-one e2e-other fuzz soak pages bench bench-editor pictures team requirements clean
.SUFFIXES:

# Where it may not keep what it has compiled, Python compiles all of it at each start.
unexport PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED

# Whose python makes .venv: PYTHON=…, else the first of these that runs and is new enough.
# (Runs: a pyenv shim answers to `command -v` for versions that are not there.)
PYTHON ?=
PYTHONS = python3.13 python3.12 python3.11 python3
NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 11))
VERSION = import sys; print("%d.%d" % sys.version_info[:2])
PYENV = $(or $(PYENV_ROOT),$(HOME)/.pyenv)
IS_WHOLE = import pip, sys; sys.exit(sys.prefix == sys.base_prefix)

BIN = .venv/bin
# Tests write and sync thousands of small files: in memory, where there is room for them and where
# programs may lie.
IN_MEMORY = $(shell grep -s ' /dev/shm ' /proc/mounts | grep -qv noexec && \
	df -Pk /dev/shm | awk '$$4 > 4000000 {print "TMPDIR=/dev/shm"; exit}')
# One more than there are cores, for most wait for a process now and then; more than four would only
# wait for each other's.
WORKERS = $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
PYTEST = $(IN_MEMORY) $(BIN)/pytest -n $(WORKERS) --maxprocesses=4 --dist=worksteal
PIP = $(BIN)/python -m pip --disable-pip-version-check --no-input
COMPILE = $(BIN)/uv pip compile -q --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate pyproject.toml

# npm builds the extension, and installs the real Codex CLI (tests/codex) and the workbench in the
# browser (tests/workbench).
HAS_NODE = node --version >/dev/null 2>&1 && npm --version >/dev/null 2>&1
NEEDS_NODE = $(HAS_NODE) || { echo 'Node 20 or newer is needed here, with npm.' >&2; exit 1; }

VSIX = dist/codex-checkpoints-$(shell sed -n 's/^  "version": "\(.*\)",$$/\1/p' package.json).vsix
GOES_IN = package.json package-lock.json .vscodeignore README.md LICENSE docs/editor.png \
	docs/terminal.png $(shell find extension server/codex_checkpoints -type f ! -name '*.pyc' ! -name '.*')

# How long `make fuzz` runs, and how long `make soak`.
FUZZ_SECONDS = 60
HOURS = 0.1

# What `make run` is to do otherwise; `make run RUN=--help` lists it.
RUN =

BROWSERS = chromium chromium-browser google-chrome google-chrome-stable
WORKBENCH = tests/workbench/node_modules

# The workbench and the browser are not ours, and a test can fail by them: what failed runs once
# more, both results are shown, and what fails twice has failed.  A test that hangs fails after ten
# minutes.  Two halves, of about the same time, run side by side, each in one process, in which tests
# share a workbench; then those that hold something to a time, alone.
END_TO_END = $(IN_MEMORY) VSIX='$(CURDIR)/$(VSIX)' $(WORKBENCH)/.node24/node --test --test-reporter=spec \
	--test-timeout=600000 --test-isolation=none
in_workbench = $(patsubst %,tests/workbench/%.test.ts,$(1))
TIMED = $(call in_workbench,codex_at_work many_sessions)
ONE_HALF = $(call in_workbench,missing_parts compaction digest hostile_text make_run search session_page)
OTHER_HALF = $(filter-out $(TIMED) $(ONE_HALF),$(wildcard tests/workbench/*.test.ts))
run_twice = $(END_TO_END) --test-rerun-failures=build/$(1).json $(2) || \
	{ echo 'What failed above runs once more:'; $(END_TO_END) --test-rerun-failures=build/$(1).json $(2); }

help:
	@echo 'make run           open an editor with the extension in it: VS Code, else one in the browser'
	@echo '                   (Ctrl-C ends it; RUN=--help lists what can be chosen)'
	@echo 'make watch         follow your Codex sessions in this terminal (Ctrl-C ends it)'
	@echo 'make package       the extension as one file: $(VSIX)'
	@echo 'make test          lint, types, contracts, tests, extension: all that needs neither Codex'
	@echo '                   nor a browser'
	@echo 'make pythons       the tests on each other Python from 3.11 on that is here'
	@echo 'make codex         the tests with the real Codex CLI, which npm installs into tests/codex'
	@echo 'make e2e           the packaged extension in a real workbench; pictures in build/workbench'
	@echo 'make fuzz          broken input on each core for a minute (FUZZ_SECONDS=7200: for two hours)'
	@echo 'make soak          servers, command lines and the real Codex at work in one home for six'
	@echo '                   minutes (HOURS=2: for two hours)'
	@echo 'make bench         what it costs, as bench/README.md shows it'
	@echo 'make bench-editor  how long people wait for a page and a list in the editor'
	@echo 'make pictures      the pictures of the walkthrough and of the README anew, of the demo'
	@echo 'make team          a PostgreSQL server and two people who share sessions there, to look at'
	@echo 'make pages         docs/cli.md and server/PROTOCOL.md anew from the code'
	@echo 'make clean         remove what was installed and built'
	@echo 'make requirements  compile requirements*.txt anew from pyproject.toml'
	@echo 'PYTHON=...         the interpreter for .venv (3.11 or newer), before the first set-up'

run: announced setup $(VSIX)
	@$(BIN)/python tools/run.py $(VSIX) $(RUN)

# Before the first download.
announced:
	@[ -f .venv/.ok ] && [ -f node_modules/.ok ] || printf '%s\n' \
		'Installs, all below this folder: Python packages in .venv (460 MB), npm packages in' \
		'node_modules (250 MB), the built extension in dist. `make clean` removes them.'

watch: setup
	$(BIN)/codex-checkpoints watch

package: $(VSIX)

# First what reads the source, two at a time; the tests use two cores by themselves.
test: setup
	@$(MAKE) --no-print-directory -j2 types lint contracts extension
	@$(MAKE) --no-print-directory unit

setup: .venv/.ok

# All that the tests need from elsewhere; `make -j4 fetched` waits for everything at once.
fetched: .venv/.ok node_modules/.ok tests/codex/node_modules/.ok $(WORKBENCH)/.ok

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup
	$(BIN)/basedpyright

contracts: setup
	$(BIN)/lint-imports --no-logo

extension: setup
	@if $(HAS_NODE); then \
		$(MAKE) --no-print-directory node_modules/.ok && set -x && npm run check && npm test; \
	else \
		echo 'No node and npm here: the extension is not checked.'; \
	fi

unit: setup
	$(PYTEST) -m 'not codex'

# On each Python that is here, on the PATH or from pyenv, but the one of .venv: what takes seconds
# ran there.  One venv a version, below build/.
pythons: setup
	@own=$$($(BIN)/python -c '$(VERSION)'); seen=" $$own "; \
	for python in python3.11 python3.12 python3.13 python3.14 $(wildcard $(PYENV)/versions/*/bin/python3); do \
		"$$python" -c '$(NEW_ENOUGH)' >/dev/null 2>&1 || continue; \
		version=$$("$$python" -c '$(VERSION)'); \
		case "$$seen" in *" $$version "*) continue;; esac; \
		seen="$$seen$$version "; \
		$(MAKE) --no-print-directory on-one-python PYTHON="$$python" BIN="build/python-$$version/bin" || exit 1; \
	done

on-one-python:
	@echo "The tests on $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv $(dir $(BIN))
	@$(PIP) install -q --require-hashes --only-binary :all: -r requirements-dev.txt
	@$(PIP) install -q --no-deps --no-build-isolation -e .
	@$(PYTEST) -q -p no:cacheprovider -m 'not codex and not slow'

codex: setup tests/codex/node_modules/.ok
	$(PYTEST) -m codex

e2e: setup node_modules/.ok tests/codex/node_modules/.ok $(WORKBENCH)/.ok $(VSIX)
	@for name in $(BROWSERS); do command -v "$$name" >/dev/null && exit 0; done; \
		echo 'A browser is needed: $(BROWSERS). On Debian: apt-get install chromium' >&2; exit 1
	$(BIN)/pytest -q tests/project/test_vsix.py
	node_modules/.bin/tsc -p tests/workbench
	@mkdir -p build && rm -f build/one.json build/other.json build/timed.json
	@$(MAKE) --no-print-directory -j2 e2e-one e2e-other
	$(call run_twice,timed,$(TIMED))

e2e-one:
	$(call run_twice,one,$(ONE_HALF))

e2e-other:
	$(call run_twice,other,$(OTHER_HALF))

fuzz: setup
	$(BIN)/python tests/fuzz.py --seconds $(FUZZ_SECONDS)

# Without Node the real Codex does not take part.
soak: setup
	@if $(HAS_NODE); then $(MAKE) --no-print-directory tests/codex/node_modules/.ok; fi
	$(BIN)/python tests/soak.py --hours $(HOURS)

pages: setup
	$(BIN)/python tools/pages.py

bench: setup
	$(BIN)/python bench/run.py

bench-editor: setup node_modules/.ok $(WORKBENCH)/.ok $(VSIX)
	node_modules/.bin/tsc -p tests/workbench
	$(END_TO_END) tests/workbench/bench.ts

# The pictures of the walkthrough and of the README.
pictures: setup node_modules/.ok $(WORKBENCH)/.ok $(VSIX)
	node_modules/.bin/tsc -p tests/workbench
	$(END_TO_END) tests/workbench/pictures.ts

team: setup
	@$(BIN)/python tools/team.py

requirements: setup
	$(COMPILE) -o requirements.txt
	$(COMPILE) --extra dev -o requirements-dev.txt

clean:
	rm -rf .venv build bundled dist node_modules $(WORKBENCH)
	rm -rf tests/codex/node_modules tests/codex/older/node_modules
	rm -rf .coverage htmlcov .hypothesis .import_linter_cache .pytest_cache .ruff_cache
	find server tests bench tools extension -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The stamps lie inside what they vouch for: who deletes the folder deletes the stamp.
# A .venv that is one and has its pip is kept and brought up to date; a half-made one is made again.
.venv/.ok: requirements-dev.txt pyproject.toml
	@if ! $(BIN)/python -c '$(IS_WHOLE)' >/dev/null 2>&1; then \
		chosen='$(PYTHON)'; \
		for candidate in $(if $(PYTHON),,$(PYTHONS)); do \
			if "$$candidate" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then chosen=$$candidate; break; fi; \
		done; \
		if ! "$${chosen:-false}" -c '$(NEW_ENOUGH)'; then \
			echo "Python 3.11 or newer is needed; tried: $(if $(PYTHON),$(PYTHON),$(PYTHONS))." \
				'Name one with: make PYTHON=/path/to/python3' >&2; \
			exit 1; \
		fi; \
		echo "Making .venv with $$chosen ($$("$$chosen" --version))"; \
		if ! "$$chosen" -m venv --clear .venv; then \
			echo "$$chosen cannot make virtual environments. On Debian and Ubuntu:" \
				'apt-get install python3-venv' >&2; \
			exit 1; \
		fi; \
	fi
	$(PIP) install -q --require-hashes --only-binary :all: -r requirements-dev.txt
	$(PIP) install -q --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q server
	@touch $@

node_modules/.ok: package-lock.json
	@$(NEEDS_NODE)
	npm ci
	@touch $@

tests/codex/node_modules/.ok: tests/codex/package-lock.json tests/codex/older/package-lock.json
	@$(NEEDS_NODE)
	cd tests/codex && npm ci
	cd tests/codex/older && npm ci
	@touch $@

$(WORKBENCH)/.ok: tests/workbench/package-lock.json tests/workbench/install.sh
	@$(NEEDS_NODE)
	tests/workbench/install.sh

$(VSIX): $(GOES_IN) node_modules/.ok .venv/.ok
	npm run package
