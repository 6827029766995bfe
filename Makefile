# Everything a contributor runs. Each target sets up what it needs; a second run is quick.

BIN := .venv/bin
# pyright's wrapper would ask a registry for news on each run; the version is the one in constraints.txt.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint format docs bench pin conformance conformance-setup

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-24s %s\n", $$1, $$2 }'

venv: ## .venv with .venv/bin/anykit, at the versions of constraints.txt
	@scripts/venv.sh

demo: venv ## The main job on real files, step by step; offline, no keys
	@$(BIN)/anykit demo

lint: venv ## ruff, pyright, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test: lint ## Everything that has to hold: lint, then all tests
	$(BIN)/pytest

conformance-setup: venv ## The MCP conformance suite, into .venvs (once)
	@scripts/conformance-setup.sh

conformance: venv ## Our MCP server and client against the conformance suite, in both eras
	@scripts/conformance.sh

format: venv ## Let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: venv ## The documentation site, into site/
	$(BIN)/zensical build --clean --strict

bench: venv ## What a call costs, against floor programs and peers measured in the same run
	@bench/run.sh

pin: ## Write constraints.txt anew, with the newest versions
	scripts/pin.sh
