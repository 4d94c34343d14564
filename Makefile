# Needs make and Python 3.11 or newer with venv and pip. Every target sets up .venv by itself.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

.DEFAULT_GOAL := help
.PHONY: demo test test-slow test-cpus torture lint format bench experiments docs clean help

demo: $(INSTALLED)  ## Run the demonstration
	@$(BIN)/hylift demo

test: $(INSTALLED)  ## Run the tests, except those marked slow
	@$(BIN)/python -m pytest -q -n auto --dist loadfile

test-slow: $(INSTALLED)  ## Run the tests marked slow
	@$(BIN)/python -m pytest -q -n auto --dist loadfile -m slow

test-cpus: $(INSTALLED)  ## Run the numerical tests as on other processors, or as on CPUS=NAME
	@$(BIN)/python tests/processors.py $(CPUS)

torture: $(INSTALLED)  ## Try to break everything for an hour, or for SECONDS, from SEED on
	@$(BIN)/python -m torture --seconds $(or $(SECONDS),3600) $(if $(SEED),--seed $(SEED))

lint: $(INSTALLED)  ## Check style, formatting and types
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy

format: $(INSTALLED)  ## Format the code and mend what ruff can mend
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

bench: $(INSTALLED)  ## Run the benchmarks
	@$(BIN)/python -m benchmarks

experiments: $(INSTALLED)  ## Run the paper's experiments, on generated evidence or on DATA=DIR
	@$(BIN)/python -m experiments all --quick $(if $(DATA),--data "$(DATA)")

docs: $(INSTALLED)  ## Build the documentation, with all its figures, into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Documentation: site/index.html"

clean:  ## Remove build products and caches; keep .venv
	@rm -rf build dist site .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -path ./.venv -prune -o -type d -name __pycache__ -exec rm -rf {} +
	@rm -f $(INSTALLED)  # the compiled kernels went with __pycache__: warm up again

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

# Remade when the dependencies change. A .venv that is broken or too old is replaced.
$(INSTALLED): pyproject.toml constraints.txt
	@$(BIN)/python -c 'import pip; $(IS_NEW_ENOUGH)' 2>/dev/null || { \
	    $(PYTHON) -c '$(IS_NEW_ENOUGH)' || { \
	        echo "hylift needs Python 3.11 or newer, but $(PYTHON) is" \
	            "$$($(PYTHON) --version 2>&1)." \
	            "Name a newer one, for example: make PYTHON=python3.12 test" >&2; \
	        exit 1; \
	    }; \
	    echo "Creating .venv"; \
	    $(PYTHON) -m venv --clear .venv; \
	}
	@echo "Installing hylift and its development tools into .venv (once, a few minutes)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -m compileall -q src
	@echo "Compiling the numerical kernels (once, some minutes)"
	@$(BIN)/python -m hylift.warm_up
	@touch $@
