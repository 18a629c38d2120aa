# Everything below builds its own virtual environment from the project's files; python3 and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.installed-demo
SMOKE_STAMP := $(VENV)/.installed-smoke
BENCH_STAMP := $(VENV)/.installed-bench
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable
FAILED := pip could not install what is needed: see above. It takes a network connection and some free disk space.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
PICTURES := draw_linkages drift work_precision draw_stepping draw_large draw_simulation draw_stages track_loops \
  balance draw_reactive sampling sampling_quadruped

.PHONY: help demo drop closed-loops pictures smoke test test-all soak lint format bench doctor clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Delassus needs Python 3.11 or later; $(PYTHON) is not. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
	  echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Delassus, NumPy, llvmlite and matplotlib into $(VENV) ..."
	@$(INSTALL) '.[demo]' || { echo "$(FAILED)"; exit 1; }
	@touch $@

$(SMOKE_STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Delassus, NumPy, llvmlite and pytest into $(VENV) ..."
	@$(INSTALL) '.[test]' || { echo "$(FAILED)"; exit 1; }
	@touch $@

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing Delassus and all that its tests compare it with into $(VENV), about 2 GB: this takes minutes ..."
	@$(INSTALL) '.[dev]' || { echo "$(FAILED)"; exit 1; }
	@touch $@ $(DEMO_STAMP) $(SMOKE_STAMP)

$(BENCH_STAMP): $(STAMP)
	$(INSTALL) '.[dev,bench]'
	@touch $@

demo: $(DEMO_STAMP)  ## a quadruped learns to walk, in a minute at most: curves and a film
	$(BIN)/python examples/learn_to_walk.py

drop: $(DEMO_STAMP)  ## 1 024 quadrupeds and 1 024 bipeds with closed loops fall to the ground: a table, pictures, films
	$(BIN)/python examples/drop.py

closed-loops: $(DEMO_STAMP)  ## robots with closed loops: every method on 4 096 states, 10 s of motion, pictures
	$(BIN)/python examples/closed_loops.py

pictures: $(STAMP)  ## draw the pictures of the guides anew, into docs/images
	for name in $(PICTURES); do $(BIN)/python examples/$$name.py || exit 1; done

smoke: $(SMOKE_STAMP)  ## a minute: imports, house rules, one robot moved in every way; needs NumPy and llvmlite alone
	$(BIN)/python -m pytest -m smoke

test: $(STAMP)  ## every test that fits into a few minutes
	$(PYTEST) -m "not slow"

test-all: $(STAMP)  ## every test, on code as users get it; then property tests on new examples (SEED=… repeats them)
	$(PYTEST) --full-effort --hypothesis-profile=fixed
	$(PYTEST) -m hypothesis --hypothesis-profile=random $(if $(SEED),--hypothesis-seed=$(SEED))

soak: $(STAMP)  ## many robot steps with torques, pushes, resets and faults: nothing lost, leaked or different (STEPS=1e8)
	$(BIN)/python -m benchmarks.soak --steps $(or $(STEPS),1e8) $(if $(ROBOTS),--robots $(ROBOTS))

lint: $(STAMP)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH_STAMP)  ## speed, as ratios within one run; ROBOTS=folder adds third-party robots
	$(if $(ROBOTS),DELASSUS_ROBOTS=$(ROBOTS)) $(BIN)/python -m benchmarks $(SECTIONS)

doctor: $(STAMP)  ## versions, CPU, cache, and a small kernel checked
	$(BIN)/delassus doctor

clean:  ## remove the virtual environment and all output
	rm -rf $(VENV) output build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
