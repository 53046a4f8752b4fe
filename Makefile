# Everything a developer types. Each target sets up what it needs: a virtual environment from
# requirements.lock, and the control plane, which is built once per user. Needed beforehand:
# Python 3.11 or newer, make, and the package registries.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests that run at a time: the clusters of four load two cores well.
WORKERS ?= 4
INSTALLED := $(VENV)/.installed

# Compiled code is kept, whatever the caller's own habit: everything starts quicker.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: controlplane ## Show two gangs sharing a cluster, in under a minute
	@$(BIN)/pumice demo

.PHONY: test
test: controlplane ## Unit tests, and the acceptance tests in their short form
	@PUMICE_LENGTH=short $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder

.PHONY: unit
unit: $(INSTALLED) ## Unit tests, in a quarter of a minute
	@$(BIN)/python -m pytest tests/unit -n 2 --dist worksteal

.PHONY: quick
quick: $(INSTALLED) ## All tests without a cluster, in half a minute
	@$(BIN)/python -m pytest -m "not cluster" -n 3 --dist worksteal

.PHONY: e2e
e2e: controlplane ## Everything: the cases, the acceptance tests at full counts
	@$(BIN)/python -m tests.cases tests/cases/scenarios; cases=$$?; \
	    PUMICE_LENGTH=full $(BIN)/python -m pytest && exit $$cases

.PHONY: cases
cases: controlplane ## The cases alone, each on a control plane of its own (half an hour)
	@$(BIN)/python -m tests.cases tests/cases/scenarios

.PHONY: lint
lint: $(INSTALLED) ## Style, formatting, types, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

.PHONY: format
format: $(INSTALLED) ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

.PHONY: bench
bench: controlplane ## Measure; prints a table and writes build/bench.json
	@$(BIN)/python -m benchmarks

.PHONY: generate
generate: $(INSTALLED) ## Write CRDs, admission policies and the page of Job phases anew from the code
	@$(BIN)/python -m pumice.core.api.crd manifests/crds
	@$(BIN)/python -m pumice.core.admission.policy_mode manifests/admission/policies
	@$(BIN)/python -m pumice.core.jobs.state_page docs/job-states.md

.PHONY: manifests
manifests: $(INSTALLED) ## Write build/pumice.yaml, which installs Pumice in a cluster (IMAGE=...)
	@mkdir -p build
	@$(BIN)/pumice manifests $(if $(IMAGE),--image=$(IMAGE)) > build/pumice.yaml
	@echo "Install it with: kubectl apply -f build/pumice.yaml"

.PHONY: controlplane
controlplane: $(INSTALLED) ## Build the control plane if it is missing (once, 5 min on two cores)
	@$(BIN)/python -m pumice.local.build

.PHONY: venv
venv: $(INSTALLED) ## Make the virtual environment

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Pumice needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	    echo "Name another one: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Making the virtual environment $(VENV) (about half a minute)."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: lock
lock: ## Resolve the dependencies anew (needs uv)
	@printf 'hatchling\neditables\n' | uv pip compile --quiet pyproject.toml - \
	    --extra cli --extra test --universal --python-version 3.11 --generate-hashes \
	    --no-annotate --custom-compile-command "make lock" -o requirements.lock

.PHONY: clean
clean: ## Remove what was made in this checkout; the built control plane stays in the user's cache
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
