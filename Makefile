# The daily commands. Everything longer than three lines is a script in tools/.
.DEFAULT_GOAL := help
.PHONY: help setup check fix unit test soak-requests soak-schema soak-api demo soak-fork bench docs generate wheel clean
export PYTHONDONTWRITEBYTECODE =
PY := .venv/bin/python
PYTEST := $(PY) -m pytest

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.venv/ready: pyproject.toml constraints.txt tools/setup
	@tools/setup

setup: .venv/ready ## find Python ≥ 3.12, make .venv, install Toft and its tools

needs: setup
	@tools/system-packages
	@tools/node-packages examples/todos

check: setup ## format, lint, types, floors, generated files: under half a minute
	.venv/bin/ruff format --check --quiet . && .venv/bin/ruff check --quiet .
	.venv/bin/basedpyright && .venv/bin/lint-imports --no-logo
	$(PY) tools/reference.py --check

fix: setup ## format, and mend what can be mended safely
	.venv/bin/ruff check --fix --quiet . ; .venv/bin/ruff format .

unit: setup ## unit and property tests: no processes, no network
	$(PYTEST) tests/unit tests/property -q

test: needs ## everything that a change must pass, cheapest first
	$(MAKE) --no-print-directory check
	$(PYTEST)

soak-fork: needs ## 500 forks of a database that is written to, each checked
	TOFT_TEST_FORKS=500 $(PYTEST) tests/service/daemon/test_forks.py::test_every_fork_is_sound -q

soak-requests: setup ## a million wild requests to the Data API, none of which may end in a 5xx: an hour
	WILD_REQUESTS=$${REQUESTS:-1000000} $(PYTEST) tests/service/rest/test_wild_requests.py -q -s

soak-schema: setup ## ten thousand changes of a schema, each seen by the next request: minutes
	SCHEMA_PAIRS=$${PAIRS:-10000} $(PYTEST) tests/service/rest/test_freshness.py -k after_each_change -q -s

soak-api: setup ## a million requests through a gateway, whose memory must stay as it is: minutes
	$(PY) -m toft.bench.soak_api $${REQUESTS:-1000000}

demo: needs ## the example app on a backend of its own, through supabase-py and supabase-js
	@tools/demo

bench: setup ## what Toft costs on this machine, beside a floor
	.venv/bin/toft bench

generate: setup ## rebuild docs/reference from the code
	$(PY) tools/reference.py

docs: setup ## the manual as a site, in site/
	$(PY) -m pip install --quiet --constraint constraints.txt --group docs
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

wheel: setup ## dist/toft-*.whl
	$(PY) -m pip wheel --quiet --no-deps --wheel-dir dist .

clean: ## remove what the commands above made
	rm -rf .venv dist site examples/*/node_modules .pytest_cache .ruff_cache .hypothesis .import_linter_cache
