# make run: the app. make test: the whole suite. make check: lint, types, layers, of Python, JavaScript and CSS. Each installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: run test check docs pictures mutants lock lower-bounds licences sbom audit browsers clean

run: $(VENV)/.run
	$(BIN)/streamlit run app.py

# Three processes of one thread each, as browser tests wait now and then: on two cores 458 s, where four, who take the caches from
# each other, need 13 % more processor and 510 s, and two wait too long. More threads wait for each other (0.3 s became 45). In the order of
# the folders: sorted by number of tests, the long journeys of a browser would come last and keep one process waiting. Browser tests
# are two pieces of work (tests/schedule.py): each process that has some starts a server and a Chromium of its own.
# Bytecode is kept whatever the environment says: each of the trainings, servers and commands that tests start saves 0.6 s.
test: $(VENV)/.dev browsers node_modules/.package-lock.json
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.dev node_modules/.package-lock.json
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.supply.locks
	$(NPM) run --silent check

# The documentation site in site/. A broken link or anchor is an error.
docs: $(VENV)/.dev
	PYTHONPATH=$(CURDIR) $(BIN)/python -m zensical build --clean --strict

# The two of a first slide in docs/pictures/; PICTURES="--run RUN --query ROW" for a failure of a run of yours, --to FOLDER for elsewhere.
pictures: $(VENV)/.run
	$(BIN)/python -m docs.make_pictures $(PICTURES)

# Mutation tests of one package in a copy of the committed tree, for example nightly:
# make mutants MUTATED=dmlcore/storage (or dmlcore/metrics, dmlcore/losses, pages/shared/server); TESTS=... names other tests.
# Mutants of | are left out: most are type annotations.
MUTATED ?= dmlcore/metrics
TESTS ?= $(patsubst pages/%,tests/pages/%,$(patsubst dmlcore/%,tests/%,$(MUTATED)))
mutants: $(VENV)/.dev
	$(PYTHON) -m venv $(VENV)/mutation
	$(VENV)/mutation/bin/pip install --quiet cosmic-ray==8.7.0
	rm -rf $(VENV)/mutated && git clone --quiet . $(VENV)/mutated
	cd $(VENV)/mutated && printf '[cosmic-ray]\nmodule-path = "%s"\ntimeout = 300\nexcluded-modules = []\ntest-command = "%s"\n[cosmic-ray.distributor]\nname = "local"\n[cosmic-ray.filters.operators-filter]\nexclude-operators = ["core/ReplaceBinaryOperator_BitOr_.*"]\n' \
	  '$(MUTATED)' '$(CURDIR)/$(BIN)/python -m pytest -x -q -n 0 $(TESTS)' > mutation.toml \
	  && ../mutation/bin/cosmic-ray init mutation.toml session.sqlite && ../mutation/bin/cr-filter-operators session.sqlite mutation.toml \
	  && ../mutation/bin/cosmic-ray baseline mutation.toml \
	  && ../mutation/bin/cosmic-ray exec mutation.toml session.sqlite && ../mutation/bin/cr-report --surviving-only session.sqlite

# Debian ships venv as a package of its own; root can fetch it, others are told what is missing.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "DML Lab needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq python3-venv; } \
	  || { echo "Install the package python3-venv first (apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Whatever build of torch the configured index serves, as its builds for CPUs have other digests than requirements-torch.lock;
# make run TORCH_SHA256=DIGEST takes that wheel alone. All else has the digests of the locks.
INSTALL = $(BIN)/pip install --quiet
TORCH = $(shell grep '^torch==' requirements.txt)

$(VENV)/.run: requirements.lock requirements.txt pyproject.toml | $(BIN)/python
	$(INSTALL) --require-hashes --no-deps -r requirements.lock
	$(if $(TORCH_SHA256),echo '$(TORCH) --hash=sha256:$(TORCH_SHA256)' > $(VENV)/torch.txt)
	$(INSTALL) $(if $(TORCH_SHA256),--require-hashes --no-deps -r $(VENV)/torch.txt,$(TORCH))
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	$(INSTALL) --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

# What checks JavaScript and CSS, and axe-core for the browser tests (package-lock.json). node and npm come with the development
# packages, whatever the machine has.
NPM = PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm
node_modules/.package-lock.json: package-lock.json | $(VENV)/.dev
	$(NPM) ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Resolves anew, keeping what the requirements still allow (make lock UPGRADE=--upgrade: the newest); nothing is installed.
lock: $(VENV)/.dev
	$(INSTALL) --target $(VENV)/uv --upgrade uv==0.13.9
	$(BIN)/python -m docs.supply.locks --uv $(VENV)/uv/bin/uv $(UPGRADE)

# The library's tests with the lowest versions that pyproject.toml allows; downloads gigabytes (torch with CUDA).
# BOUNDS="--into FOLDER" keeps the environment, BOUNDS="-- tests/losses" runs some of the tests.
lower-bounds: $(VENV)/.dev
	$(INSTALL) --target $(VENV)/uv --upgrade uv==0.13.9
	$(BIN)/python -m docs.supply.lower_bounds --uv $(VENV)/uv/bin/uv $(BOUNDS)

licences: $(VENV)/.dev
	$(BIN)/python -m docs.supply.licences

# CycloneDX: every package of the app with version, digests, licence and who needs it.
sbom: $(VENV)/.run
	$(BIN)/python -m docs.supply.sbom sbom.cdx.json

# Known weaknesses of what is locked, from the advisories of PyPI; also fails if a package cannot be looked up there.
LOCKS = requirements.lock requirements-torch.lock requirements-dev.lock
audit: | $(BIN)/python
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/pip install --quiet pip-audit==2.10.1
	$(VENV)/audit/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes $(addprefix -r ,$(LOCKS))

# Browser tests use Debian's Chromium, one of them Firefox; of Chromium the build without windows does, with a quarter less processor for
# a page. Without one and without root they skip and say so, unless REQUIRE_BROWSER=1.
browsers:
	@has() { command -v $$1 >/dev/null && return; \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || return; \
	  echo "installing $$1 for the browser tests"; { apt-get update -qq && apt-get install -y -qq --no-install-recommends $$1; } >/dev/null 2>&1; }; \
	has chromium-headless-shell || has chromium || echo "Chromium could not be installed: tests in it will skip"; \
	has firefox-esr || echo "Firefox could not be installed: tests in it will skip"

clean:
	rm -rf $(VENV) node_modules .pytest_cache .mypy_cache .ruff_cache
