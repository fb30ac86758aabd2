# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
TARGETS ?= host
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
BIN := $(VENV)/bin
export PTXBOARD_VAR ?= $(CURDIR)/var

.PHONY: demo test lint format gpu-test clean

demo: $(VENV)/.demo
	@sh deploy/get-sandbox.sh var/tools
	@PATH="$(CURDIR)/var/tools/bin:$$PATH" $(BIN)/python manage.py demo --port $(PORT) $(TARGETS:%=--target %)

test: $(VENV)/.dev
	@sh deploy/get-test-services.sh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not gpu and not serial"
	$(BIN)/python -m pytest -m "serial and not gpu"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

gpu-test: $(VENV)/.dev
	$(BIN)/python -m pytest -m gpu

$(VENV)/.demo: pyproject.toml constraints.txt deploy/extras.py
	@echo "Setting up $(VENV): the first time takes a few minutes, nearly all of it downloads."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar on \
		-c constraints.txt -e ".[$$($(PYTHON) deploy/extras.py worker)]"
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt deploy/extras.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet \
		-c constraints.txt -e ".[$$($(PYTHON) deploy/extras.py worker dev)]"
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) var build *.egg-info
