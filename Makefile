# Two commands matter: `make up` brings everything up, `make test` proves it.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
unexport PYTHONDONTWRITEBYTECODE  # otherwise every process compiles all modules at each start

STORE ?= both        # which Valkey the tests use: plain, cluster, both; of chaos and soak: redis, the redis-server on PATH
SPLIT ?= 4           # processes that share the tests, each with stores of its own
SECONDS ?= 60        # how long make simulate runs schedules
MINUTES ?= 6         # how long make chaos breaks things at random
STORES ?= 1          # stores that make chaos and make faults break: one, or those of a replica set (3)
STANDBY ?=             # 1: of chaos and faults, Postgres has a synchronous standby, and fails over
SLICE ?=             # 1: of chaos and faults, a run too short for all invariants to be checked
SEED ?=              # of what it breaks when; none: another one each time
SPARK ?= 1           # 0: make up without Spark
SINCE ?= HEAD        # what make fast compares with
ARGS ?=              # more options: make up ARGS="--port 9000"

.PHONY: help install install-dev up test test-again fast check chaos faults nightly simulate soak chromium proxies faketime lint audit-deps bench scale compare openapi reference helm sdk sdk-go sdk-java

help:
	@echo "make up       run Millstream on this machine (ARGS=\"--port 9000\" adds options, SPARK=0 leaves Spark out)"
	@echo "make install  what that needs into .venv; make install-dev: what tests and linters need"
	@echo "make test     run every test; NOUN=groups runs those of one noun"
	@echo "make fast     lint, and the unit tests of what changed since the last commit (SINCE=main: since that)"
	@echo "make check    lint, and the tests that need no server"
	@echo "make chaos    break everything at random for MINUTES (6), from SEED, on redis-server with STORE=redis, on a replica set with STORES=3; then what loses data, and kills at every step"
	@echo "make faults   the first of these alone"
	@echo "make nightly  the simulator, chaos and replicated stores for half an hour each, 200 fail-overs under load, what loses data from ten seeds, and each machine of a whole deployment"
	@echo "make simulate run the engines in virtual time for SECONDS (60), from SEED, with faults"
	@echo "make soak     work for MINUTES (60) with nothing broken, and see what grows"
	@echo "make audit-deps  look for known faults in what the locks name; asks an advisory service"
	@echo "make bench    measure against a reference in the same run"
	@echo "make scale    measure how cost grows with size (ARGS=\"--full\": up to 10 and 100 million)"
	@echo "make compare  the same work for what a user would pick instead"
	@echo "make lock     derive the locks from pyproject.toml (ARGS=\"--upgrade-package NAME\" renews one)"
	@echo "make openapi  regenerate openapi/openapi.json and openapi/asyncapi.json"
	@echo "make reference  write the pages of docs/reference that are made of the code"
	@echo "make helm     lint the Helm chart, and render it for the tests"
	@echo "make sdk      regenerate the SDKs from openapi/openapi.json (sdk-go, sdk-java: the cores of those, compiled)"

# What requirements.lock names, and what requirements-dev.lock names, which is more: the tools, and Spark.
install: .venv/.runtime
install-dev: .venv/.dev
.venv/.runtime: requirements.lock pyproject.toml
	@PYTHON="$(PYTHON)" deploy/install.sh runtime
.venv/.dev: requirements-dev.lock pyproject.toml
	@PYTHON="$(PYTHON)" deploy/install.sh dev

# Spark is installed while the service runs already, which starts the worker afterwards.
up: install
ifeq ($(strip $(SPARK)),0)
	@MILLSTREAM_SPARK=off exec $(BIN)/millstream up $(ARGS)
else
	@PYTHON="$(PYTHON)" deploy/install.sh spark $$$$; MILLSTREAM_SPARK=wait exec $(BIN)/millstream up $(ARGS)
endif

# Of the present versions in the locks those stay that still satisfy pyproject.toml; ARGS="--upgrade-package NAME" renews one.
LOCK = $(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes
.PHONY: lock
lock: install-dev
	$(LOCK) --group dev --extra spark --extra otel pyproject.toml -o requirements-dev.lock $(ARGS)
	$(LOCK) --group build pyproject.toml -c requirements-dev.lock -o requirements.lock
	$(LOCK) --group build --group spark-build --extra spark pyproject.toml -c requirements-dev.lock -o requirements-spark.lock

LINTERS := format-check ruff-check import-contracts types
.PHONY: $(LINTERS) unit
lint: install-dev
	@$(MAKE) --no-print-directory -j4 --output-sync $(LINTERS)

# Seconds: what a change breaks most often. SINCE=main compares with that rather than with the last commit.
fast: install-dev
	@$(MAKE) --no-print-directory -j4 --output-sync $(LINTERS) unit-changed
.PHONY: unit-changed
unit-changed:
	$(BIN)/python -m tests.changed $(SINCE)

check: install-dev
	@$(MAKE) --no-print-directory -j4 --output-sync $(LINTERS) unit

$(LINTERS) unit unit-changed: install-dev
# Five examples of each property; make test has fifty.
unit unit-changed: export HYPOTHESIS_PROFILE ?= quick
format-check:
	$(BIN)/ruff format --check .
ruff-check:
	$(BIN)/ruff check .
import-contracts:
	$(BIN)/lint-imports
types:
	$(BIN)/mypy
unit:
	$(BIN)/pytest -q -m 'not chaos' -n 2 tests/unit

# A package of Debian's, unless it is there or cannot be had: $(call debian,what says that it is there,the package)
debian = $(1) || ! command -v apt-get >/dev/null || \
	{ [ "$$(id -u)" = 0 ] || sudo -n true 2>/dev/null || exit 0; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo="sudo -n"; \
	$$sudo apt-get update -qq && $$sudo apt-get install -y -qq --no-install-recommends $(2) >/dev/null; } || \
	echo "$(2) could not be installed" >&2

# For the browser tests, which run in the whole of Chromium too. Where both are missing they are skipped, on a machine of CI they fail.
chromium:
	@$(call debian,command -v chromium-headless-shell >/dev/null,chromium-headless-shell)

# Clocks that jump, for the chaos runs. Where it cannot be installed, that fault is left out, and the report says so.
faketime:
	@$(call debian,test -e /usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1,faketime)

# Debian's proxies, for the tests of the page that configures them: unpacked only, because once installed they serve.
PROXIES := nginx haproxy
proxies: install-dev
	@test -e .venv/.debian/.unpacked || ! command -v apt-get >/dev/null || \
	{ sudo=; [ "$$(id -u)" = 0 ] || sudo="sudo -n"; $$sudo apt-get update -qq; mkdir -p .venv/.debian && cd .venv/.debian && \
	planned=$$(apt-get install --simulate --no-install-recommends $(PROXIES)) && \
	for package in $$(echo "$$planned" | sed -n 's/^Inst \([^ ]*\).*/\1/p'); do \
	apt-get download -qq "$$package" && dpkg-deb -x "$$package"_*.deb . && rm "$$package"_*.deb || exit; done && \
	touch .unpacked; } 2>/dev/null || \
	echo "nginx and HAProxy could not be fetched" >&2

# One after the other, because apt-get does not wait for another one.
.PHONY: debian-tools
debian-tools: install-dev
	@$(MAKE) --no-print-directory chromium
	@$(MAKE) --no-print-directory proxies

# Dozens of JVMs start during the tests, each in half the time with this.
CLASSES := .venv/share/millstream/spark-classes.jsa
$(CLASSES): .venv/.dev
	$(BIN)/python -m spark_worker.build_class_archive

# The tests of one noun: make test NOUN=groups
NOUN_TESTS = $(sort $(wildcard $(foreach kind,unit integration contract stateful,tests/$(kind)/$(NOUN) \
	tests/$(kind)/test_$(NOUN)*.py tests/$(kind)/test_$(NOUN:s=).py tests/$(kind)/test_$(NOUN:s=)_*.py)))
ifdef NOUN
test: install-dev
	@test -n "$(NOUN_TESTS)" || { echo "No tests of $(NOUN): see tests/unit for the nouns" >&2; exit 1; }
	$(BIN)/pytest --store=plain -n 2 --dist loadgroup $(NOUN_TESTS)
else
test: install-dev
	@$(MAKE) --no-print-directory -j2 debian-tools $(CLASSES)
	$(BIN)/pytest --store=$(strip $(STORE)) -m 'not chaos' -n $(strip $(SPLIT)) --dist loadgroup --ignore=tests/bench tests
endif

# What failed, once more and alone: on a shared machine a stall of seconds fails a test that waits for a reply.
# Of more than a few failures, or if the run did not end, none is run again.
AGAIN_MAX := 5
test-again:
	@failed=$$(grep -c '::' .pytest_cache/v/cache/lastfailed) && [ "$$failed" -le $(AGAIN_MAX) ] || exit 1; \
	echo "$$failed failed beside others; once more, alone:" && sed -n 's/^  "\(.*\)": true,\{0,1\}$$/  \1/p' .pytest_cache/v/cache/lastfailed
	$(BIN)/pytest --store=$(strip $(STORE)) -m 'not chaos' --ignore=tests/bench --last-failed --last-failed-no-failures none tests

REDIS := $(if $(filter redis,$(STORE)),--store redis)
chaos: faults
	$(BIN)/python -m tests.chaos.data_loss $(if $(strip $(SEED)),--seed $(strip $(SEED))) $(REDIS)
	$(BIN)/pytest -m chaos tests

# What takes hours: run it each night. The third run is 200 fail-overs under load.
FAIL_OVERS := kill_primary deafen_replica pause_primary part_primary stop_controller
nightly:
	$(MAKE) simulate SECONDS=1800
	$(MAKE) chaos MINUTES=30
	$(MAKE) faults MINUTES=30 STORES=3
	$(BIN)/python -m tests.chaos.run --minutes 20 --stores 3 --slice --only $(FAIL_OVERS)
	$(BIN)/python -m tests.chaos.data_loss --scenario replicated --seeds 10
	$(BIN)/python -m tests.chaos.run --minutes 2 --standby --slice --only postgres_failover kill_api
	$(BIN)/python -m tests.chaos.deployment.run

faults: install-dev faketime
	$(BIN)/python -m tests.chaos.run --minutes $(strip $(MINUTES)) --stores $(strip $(STORES)) $(if $(strip $(STANDBY)),--standby) $(if $(strip $(SLICE)),--slice) $(if $(strip $(SEED)),--seed $(strip $(SEED))) $(REDIS)

# Engines in virtual time: thousands of schedules with faults, each repeatable by its seed.
simulate: install-dev
	$(BIN)/python -m tests.simulator.run --seconds $(strip $(SECONDS)) $(if $(strip $(SEED)),--seed $(strip $(SEED)))

# Nothing is broken: what a deployment uses must stay bounded. An hour says more than ten minutes, in which stores still fill.
soak: install-dev
	$(BIN)/python -m tests.chaos.soak --minutes $(if $(filter file,$(origin MINUTES)),60,$(strip $(MINUTES))) $(REDIS)

# Not part of the suite: it needs the network, and what it says changes while nothing here does.
audit-deps: install-dev
	@$(BIN)/uv tool run pip-audit --strict --disable-pip --require-hashes -r requirements-dev.lock || { \
		echo "Either something above is known to be faulty, or the advisory service could not be asked: then nothing is known." >&2; \
		exit 1; }

bench: install-dev
	$(BIN)/python -m tests.bench $(ARGS)

scale: install-dev
	$(BIN)/python -m tests.bench.scale $(ARGS)

# Installs the others: Debian packages as root, the rest into .venv/.compare. What cannot be had is named, and left out.
compare: install-dev
	$(BIN)/python -m tests.bench.compare $(ARGS)

openapi: install-dev
	$(BIN)/millstream openapi > openapi/openapi.json.new
	mv openapi/openapi.json.new openapi/openapi.json
	$(BIN)/millstream asyncapi > openapi/asyncapi.json.new
	mv openapi/asyncapi.json.new openapi/asyncapi.json

reference: openapi
	$(BIN)/millstream reference docs/reference

# Helm is built by Go where it is not installed: no package index that is used here has it.
HELM ?= $(shell command -v helm || echo "go run helm.sh/helm/v3/cmd/helm@v3.22.0")
helm: install-dev
	$(HELM) lint --strict deploy/helm/millstream
	$(HELM) lint --strict deploy/helm/millstream --values tests/unit/helm/everything.yaml
	$(HELM) lint --strict deploy/helm/millstream --values tests/unit/helm/stores.yaml
	$(BIN)/python -m tests.unit.helm.rendering "$(HELM)"

sdk: openapi
	$(BIN)/python openapi/generate.py python
	cd openapi/sdk/typescript && npm ci --no-audit --no-fund --ignore-scripts
	$(BIN)/python openapi/generate.py typescript

sdk-go sdk-java: sdk-%: install-dev
	$(BIN)/python openapi/generate.py $*
