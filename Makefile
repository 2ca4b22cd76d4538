# `make demo` and `make test` set everything up on a machine that has nothing but Python >= 3.11.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEVICES = virtual:$(shell $(BIN)/python -c 'import os; print(min(8, len(os.sched_getaffinity(0))))')

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench clean

help: ## Show this help.
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("sooner needs Python >= 3.11, $(PYTHON) is " + sys.version.split()[0]) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

demo: $(STAMP) ## Run a real script of 49 pytest calls on 8 virtual devices, then a distributed suite.
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python bench/demo.py

test: $(STAMP) ## Run the tests, with sooner itself: on as many pretended devices as there are CPUs. DEVICES= is plain pytest.
	@$(BIN)/python -m compileall -q src  # once for the hundreds of processes, also where PYTHONDONTWRITEBYTECODE is set
	$(BIN)/python -m pytest -q $(if $(DEVICES),--gpus=$(DEVICES))

lint: $(STAMP) ## Check style and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## Format the code.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## Print the figures of runs next to their peers (about 40 minutes); bench/README.md has the other benches.
	$(BIN)/python bench/overhead.py
	$(BIN)/python bench/makespan.py
	$(BIN)/python bench/transformer_engine.py
	$(BIN)/python bench/faults.py
	$(BIN)/python bench/iota.py

clean: ## Remove everything that was built.
	rm -rf $(VENV) .sooner .pytest_cache .mypy_cache .ruff_cache build dist
