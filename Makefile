# Everything here runs in .venv, which is made at the first use from the versions that
# requirements/dev.txt names. `make help` lists the targets.

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The site's builder has an environment of its own: no test needs it.
DOCS_VENV ?= .venv-docs
DOCS_BIN := $(DOCS_VENV)/bin
DOCS_STAMP := $(DOCS_VENV)/.installed
# The first Python that is new enough; or name one: make PYTHON=/path/to/python3.13 test
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
CHECKED := $(wildcard kproto codegen/kproto_codegen cloudevents/kproto_cloudevents \
	pipeline/kproto_pipeline pipeline/pyspark_kproto tools tests examples)
GENERATED := kproto/messages kproto/schema kproto/protocol/error_table.py kproto/sync \
	docs/explanation/modules.md
# Tests that need nothing but Python.
ALONE := not kafka and not peers and not pulsar and not reference and not spark and not browser
QUICK := $(ALONE) and not slow
# Development mode: every warning, and asyncio's debugging. But not its allocator, which looks for
# overruns in C and takes a fifth of the time: the compiled modules, the only C here, have it.
STRICT := PYTHONDEVMODE=1 PYTHONMALLOC=pymalloc $(BIN)/python -m pytest
# One process more than there are cores, because many tests wait for brokers and sessions.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Tests that share servers, or a file, stay in one process (tests/support/selection.py); servers
# first, as they take longest.
PARALLEL := $(STRICT) --numprocesses $(WORKERS) \
	--dist loadscope --no-loadscope-reorder
VERSION ?= 4.4.0
PORT ?= 9092
ARGS ?=

# Without bytecode every process would compile the client, and the tests with it, again: two workers
# and some hundred programs that tests start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test exhaustive thorough test-all quick loops deep conformance lint types imports regen explorer bench wheels peers examples kill-test storm spark-kill-test spark-round-trip spark-ends soak docs docs-serve kafka-start \
	kafka-stop lock clean distclean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) \
		| while IFS='|' read -r name text; do printf '%-14s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## make .venv with the pinned dependencies

$(STAMP): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer was found: install one, or name it:" \
		"make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make a virtual environment: install its venv module" \
		"(Debian: apt-get install python3-venv)" >&2; exit 1; }
	@echo "installing the pinned dependencies into $(VENV)"
	@$(PIP) install --quiet -r requirements/dev.txt
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP) ## publish the real flights, run the Spark job, show what came out
	@JAVA_HOME="$$($(BIN)/python -m tools.setup.java)" && export JAVA_HOME \
		&& PYSPARK_PYTHON="$(abspath $(BIN)/python)" $(BIN)/python -m kproto_pipeline.demo $(ARGS)

test: $(STAMP) ## run all tests but the exhaustive; ARGS=--shuffle=3 in the random order of seed 3
	$(PARALLEL) --hypothesis-profile=quick -m "not exhaustive" $(ARGS)

exhaustive: $(STAMP) ## run what make test leaves out: all messages and pairs, older brokers
	$(PARALLEL) -m "exhaustive and not thorough" $(ARGS)

thorough: $(STAMP) ## run what does at length what the others show: more storms, schedules, clusters
	$(PARALLEL) -m thorough $(ARGS)

test-all: test exhaustive thorough ## run every test

quick: $(STAMP) ## run the tests that need no broker, no Java, no peers, no Spark and little time
	$(STRICT) --numprocesses auto --dist worksteal \
		--hypothesis-profile=quick -m "$(QUICK) and not exhaustive" $(ARGS)

# Eager tasks need Python 3.12; uvloop needs a platform that requirements/dev.in names.
LOOPS = $(shell $(BIN)/python -c 'import asyncio, importlib.util as packages; print(\
	"eager" if hasattr(asyncio, "eager_task_factory") else "",\
	"uvloop" if packages.find_spec("uvloop") else "")')

loops: $(STAMP) ## run the quick tests of the client with eager tasks, and again on uvloop
	@for loop in $(LOOPS); do echo "the tests of the client, --loop=$$loop"; \
		$(STRICT) --numprocesses auto --dist worksteal --hypothesis-profile=quick \
		-m "$(QUICK) and not exhaustive" --loop=$$loop tests/unit/client $(ARGS) || exit 1; done

deep: $(STAMP) ## run the property tests, most on 5,000 examples drawn anew; takes an hour
	$(STRICT) --numprocesses auto --dist worksteal \
		--hypothesis-profile=deep -m "hypothesis and $(QUICK)" $(ARGS)

conformance: $(STAMP) ## put every message to Kafka's own Java classes; write docs/evidence/conformance.md
	$(BIN)/python -m tools.reference conformance

lint: $(STAMP) ## ruff: rules and format; the language of prose, names and commit subjects
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tools.language

types: $(STAMP) ## mypy --strict, and pyright on what users see
	$(BIN)/mypy --strict $(CHECKED)
	$(BIN)/basedpyright --pythonpath $(BIN)/python

imports: $(STAMP) ## the layers and what each package may import
	$(BIN)/lint-imports --config import-contracts.toml

regen: $(STAMP) ## generate messages, the blocking client and the list of modules again; fail if that changes a file
	$(BIN)/kproto-codegen generate
	$(BIN)/python -m tools.sync
	$(BIN)/python -m tools.docs.modules
	@changed="$$(git status --porcelain -- $(GENERATED))"; test -z "$$changed" || { \
		git --no-pager diff --stat -- $(GENERATED); echo "$$changed"; \
		echo "the committed files are not what the generator writes: commit its output" >&2; \
		exit 1; }

explorer: $(STAMP) ## build the page to study the protocol, build/explorer.html
	@mkdir -p build
	$(BIN)/kproto explorer --out build/explorer.html

$(DOCS_STAMP): requirements/docs.txt
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer was found: install one, or name it:" \
		"make PYTHON=/path/to/python3 docs" >&2; exit 1; }
	@test -x $(DOCS_BIN)/pip || $(PYTHON) -m venv --clear $(DOCS_VENV)
	@echo "installing the site's builder into $(DOCS_VENV)"
	@$(DOCS_BIN)/python -m pip --disable-pip-version-check --no-input install --quiet -r $<
	@touch $@

# Kproto needs nothing but its sources: the reference is generated from them.
MKDOCS = PYTHONPATH=.:codegen:cloudevents:pipeline NO_MKDOCS_2_WARNING=1 $(DOCS_BIN)/mkdocs

docs: $(DOCS_STAMP) ## build the site of the documentation, build/docs/index.html
	@$(MKDOCS) build --strict $(ARGS)
	@echo "open build/docs/index.html"

docs-serve: $(DOCS_STAMP) ## show the site while you write: http://127.0.0.1:8000
	@$(MKDOCS) serve $(ARGS)

bench: $(STAMP) ## measure against the peers in the same run
	@JAVA_HOME="$$($(BIN)/python -m tools.setup.java)" && export JAVA_HOME \
		&& PYSPARK_PYTHON="$(abspath $(BIN)/python)" $(BIN)/python -m tools.bench $(ARGS)

wheels: $(STAMP) ## build the compiled wheel for this machine in dist, and test it in a clean environment
	@$(BIN)/python -m tools.setup.wheels $(ARGS)

peers: $(STAMP) ## build the peers' own environment, .cache/peers
	@$(BIN)/python -m tools.setup.peers

examples: $(STAMP) ## run the tests of the example services, each with its own packages
	@$(BIN)/python -m tools.setup.example_services

kill-test: $(STAMP) ## 1,000,000 records while leaders are killed, 50 times; then exactly-once, twice 50 rounds
	$(BIN)/python -m tools.kill_test --write $(ARGS)
	$(BIN)/python -m tools.kill_test.exactly_once --protocol consumer --write
	$(BIN)/python -m tools.kill_test.exactly_once --protocol consumer --way run --write

spark-ends: $(STAMP) ## the oldest PySpark on the oldest Python, the newest on the newest
	$(BIN)/python -m pytest tests/spark/test_ends.py $(ARGS)

spark-round-trip: $(STAMP) ## a million random events through sink and source, in both modes
	$(BIN)/python -m tools.spark_round_trip $(ARGS)

storm: $(STAMP) ## members of a group join, leave, are killed and stall for ten minutes, beside a Java member; ARGS=share: a share group, whose brokers are killed too
	$(BIN)/python -m tools.storm --write $(ARGS)

spark-kill-test: $(STAMP) ## streams of Spark while it and the brokers are killed, 30 times, with exactlyOnce 100 times; repeated tasks; then jobs into Delta and Iceberg
	$(BIN)/python -m tools.spark_kill_test $(ARGS)
	$(BIN)/python -m tools.spark_kill_test --exactly-once --rounds 100 --write
	$(BIN)/python -m tools.spark_repeated_tasks --write
	$(BIN)/python -m tools.job_kills --format delta --rounds 30
	$(BIN)/python -m tools.job_kills --format iceberg --rounds 30

soak: $(STAMP) ## clients under random faults for 10 minutes: memory and open files stay flat
	$(BIN)/python -m tools.soak --write $(ARGS)

kafka-start: $(STAMP) ## start a real Kafka broker: VERSION=4.4.0 PORT=9092
	@$(BIN)/python -m tools.kafka start --version $(VERSION) --port $(PORT) $(ARGS)

kafka-stop: $(STAMP) ## stop the broker at PORT=9092, and remove its data
	@$(BIN)/python -m tools.kafka stop --port $(PORT)

# The newest versions that fit the .in files, for every supported Python at once.
LOCK := .cache/lock
lock: ## resolve the .in files anew: LOCK_ARGS=--upgrade takes newer versions
	@test -x $(LOCK)/bin/uv || { $(PYTHON) -m venv $(LOCK) \
		&& $(LOCK)/bin/pip install --quiet -r requirements/lock.txt; }
	@for name in requirements/dev requirements/docs tools/peers/requirements tools/peers/opentelemetry \
			tools/peers/schema_registries; do \
		$(LOCK)/bin/uv pip compile --quiet --universal --python-version 3.11 \
			--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
			$(LOCK_ARGS) $$name.in -o $$name.txt || exit 1; done

clean: ## remove what builds, checks and the demo left
	rm -rf build dist demo-output spark-warehouse metastore_db derby.log \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: ## remove the environments, the jars and all other caches as well
	@! test -x $(BIN)/python || test -z "$$($(BIN)/python -m tools.kafka status)" || { \
		echo "brokers of this checkout still run; see python -m tools.kafka status" >&2; exit 1; }
	@$(MAKE) --no-print-directory clean
	rm -rf .venv* .cache
