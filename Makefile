# Every target sets up what it needs: `make demo` and `make test` are the first command on a fresh clone.

PYTHON    ?= python3
BIN       := .venv/bin
ENV       := .venv/.complete
COMPILED  := .venv/.compiled
KAFKA_LIB := $(or $(ODRADEK_KAFKA_LIB),.tools/kafka-lib)
KAFKA4_LIB := $(or $(ODRADEK_KAFKA4_LIB),.tools/kafka4-lib)
KAFKAJS   := $(or $(ODRADEK_KAFKAJS),.tools/kafkajs)
PYODIDE   := $(or $(ODRADEK_PYODIDE),.tools/pyodide)
BENCH     ?=
# Two workers per core: for half of its time a test waits for sessions, elections and pages.
WORKERS   ?= 4
# Packages with compiled code: their tests run a second time without it, except those that use none of it, or both twins.
UNTWINNED := $(patsubst %,tests/wire/test_%.py,against_kafka every_message hostile_bytes compiled_decoder)
UNTWINNED += $(patsubst %,tests/unit/broker/log/%.py,test_kafka_reads_our_log core/test_key_map core/test_dirtiness test_indexes \
	files/test_leader_epochs)
TWINNED   := tests/wire tests/unit/protocol tests/unit/broker/log $(UNTWINNED:%=--ignore=%)
export ODRADEK_KAFKA_LIB := $(abspath $(KAFKA_LIB))
export ODRADEK_KAFKA4_LIB := $(abspath $(KAFKA4_LIB))
export ODRADEK_KAFKAJS   := $(abspath $(KAFKAJS))
export ODRADEK_PYODIDE   := $(abspath $(PYODIDE))
# Hundreds of brokers and tools are started: none of them is to compile its modules anew, whatever the machine says.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup modules demo test check lint map man site release settings-page bench bench-page soak clean kcat chromium kafka-jars kafka-classes kafkajs

setup: $(ENV) modules kcat chromium kafka-classes kafkajs

# The compiled inner loop is built with the package, where there is a C compiler. uv fetches and unpacks packages side by
# side, pip one after another; where uv can't be had, or can't have the packages, pip does it.
UV_SOURCES = $${PIP_INDEX_URL:+UV_DEFAULT_INDEX="$$PIP_INDEX_URL"} $${PIP_FIND_LINKS:+UV_FIND_LINKS="$$PIP_FIND_LINKS"}
$(ENV): pyproject.toml $(wildcard src/odradek/native/*.[ch])
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile uv || true
	env $(UV_SOURCES) $(BIN)/uv pip install --quiet --no-cache --python $(BIN)/python --editable '.[dev]' \
		|| $(BIN)/pip install --quiet --no-compile --editable '.[dev]'
	$(BIN)/python -m odradek.native
	touch $@

# One process compiles the modules that tests import, and the tests: pip would do it for all packages while nothing else
# can be done, and workers for themselves, each of them everything.
modules: $(COMPILED)
$(COMPILED): $(ENV)
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

# The foreign tools, as far as the machine allows: a test that lacks its tool is skipped and says so.
kcat:
	@command -v kcat >/dev/null || { [ "$$(id -u)" = 0 ] && { apt-get update -qq && apt-get install -qq -y kcat; } >/dev/null 2>&1; } \
		|| echo "kcat is absent: its tests and figures are skipped (apt-get install kcat)"

chromium: | kcat
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && { apt-get update -qq && apt-get install -qq -y chromium; } >/dev/null 2>&1; } \
		|| echo "chromium is absent: the console's browser tests are skipped (apt-get install chromium)"

kafka-jars:
	@[ -d $(KAFKA_LIB) ] || mvn -q -B -f tests/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(KAFKA_LIB)) \
		|| { rm -rf $(KAFKA_LIB); echo "Kafka's jars are absent: its Java tools are not tested (needs Maven)"; }
	@[ -d $(KAFKA4_LIB) ] || mvn -q -B -f tests/kafka4/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(KAFKA4_LIB)) \
		|| { rm -rf $(KAFKA4_LIB); echo "The jars of Kafka 4 are absent: its clients are not tested (needs Maven)"; }

# Tests start dozens of ZooKeepers, and of Kafka's brokers and tools: each finds its classes parsed.
kafka-classes: $(ENV) kafka-jars
	@PYTHONPATH=tests $(BIN)/python tests/class_archive.py

kafkajs:
	@[ -d $(KAFKAJS) ] || npm install --silent --no-audit --no-fund --prefix $(KAFKAJS) kafkajs@2.2.4 >/dev/null 2>&1 \
		|| { rm -rf $(KAFKAJS); echo "kafkajs is absent: its groups are not tested (needs node and npm)"; }

# A key distribution centre for tests, and the extra [kerberos], which has to be compiled: minutes, so not in `setup`.
KERBEROS := krb5-kdc krb5-admin-server krb5-user libkrb5-dev gcc libsasl2-modules-gssapi-mit
.PHONY: kerberos
kerberos: $(ENV)
	@$(BIN)/python -c 'import gssapi, k5test' 2>/dev/null || { \
		{ command -v krb5-config >/dev/null && [ -x /usr/sbin/krb5kdc ] || { [ "$$(id -u)" = 0 ] && { apt-get update -qq \
			&& DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(KERBEROS); } >/dev/null 2>&1; }; } \
		&& $(BIN)/pip install --quiet --editable '.[realm]' >/dev/null 2>&1; } \
		|| echo "Kerberos is absent: GSSAPI is not tested (apt-get install $(KERBEROS); pip install '.[realm]')"

demo: $(ENV)
	$(BIN)/odradek demo

lint: $(ENV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports

# `make lint` before each commit, without the tool pre-commit.
.PHONY: hooks
hooks:
	printf '#!/bin/sh\nexec make lint\n' > "$$(git rev-parse --git-path hooks)/pre-commit"
	chmod +x "$$(git rev-parse --git-path hooks)/pre-commit"

# docs/settings.md is made from the definitions of the keys; a test compares them.
settings-page: $(ENV)
	$(BIN)/python -m odradek.base.config.settings_page > docs/settings.md

# The documents as a site with search, in site/; the reference pages are written from the code, links are checked.
site: $(ENV)
	$(BIN)/pip install --quiet --editable '.[docs]'
	$(BIN)/python tools/site.py

# The pictures of the console in docs/pictures: minutes, with Spark and Chromium. Look at each one before it is kept.
.PHONY: pictures
pictures: $(ENV) chromium
	$(BIN)/python tools/pictures.py docs/pictures --pipeline
	$(BIN)/python tools/pictures.py docs/pictures --security

# Python for browsers, for the page of the simulator.
.PHONY: pyodide sim-page
pyodide:
	@[ -d $(PYODIDE) ] || npm install --silent --no-audit --no-fund --prefix $(PYODIDE) pyodide@314.0.7 >/dev/null 2>&1 \
		|| { rm -rf $(PYODIDE); echo "pyodide is absent: the simulator's page can't be built (needs npm)"; }

# A static page on which people break a simulated cluster, in build/sim-page.
sim-page: $(ENV) pyodide
	$(BIN)/python tools/sim_page build/sim-page $(PYODIDE)/node_modules/pyodide

# The manual pages, from the grammar of the commands, in build/man/man1.
man: $(ENV)
	$(BIN)/odradek man --write build/man/man1

# A wheel for this machine, the source, an SBOM and release notes, in dist/.
release: $(ENV)
	$(BIN)/pip install --quiet build
	$(BIN)/python -m build --outdir dist
	$(BIN)/python tools/release.py dist

# The table of packages in ARCHITECTURE.md is made from the packages; a test compares them.
map: $(ENV)
	$(BIN)/python tools/map.py

# The inner loop: tests without a process, a clock or tens of thousands of objects.
check:
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint pure-tests

.PHONY: pure-tests
pure-tests: $(ENV)
	$(BIN)/python -m pytest --numprocesses=2 --dist=loadfile -q tests/tidy tests/scenarios tests/unit/protocol tests/unit/model \
		tests/unit/broker/controller tests/unit/broker/coordinator tests/unit/broker/replication tests/unit/broker/quotas \
		--ignore=tests/unit/broker/controller/test_controller.py

# What needs nothing of each other is done side by side: packages are fetched beside jars, and lint, and the tests of
# packages with compiled twins, run while the other tests wait for something. Their output comes in one piece.
test:
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target setup
	@$(MAKE) --no-print-directory --jobs=2 all-tests beside-tests

.PHONY: all-tests beside-tests twin-tests
# Tests run `make` too, which is no part of this one.
PYTEST = env -u MAKEFLAGS -u MFLAGS $(BIN)/python -m pytest
all-tests:
	$(PYTEST) --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder

beside-tests:
	@nice $(MAKE) --no-print-directory --output-sync=target lint twin-tests

twin-tests:
	ODRADEK_PURE=1 $(PYTEST) -q $(TWINNED)

soak: setup kerberos pyodide
	$(BIN)/pip install --quiet --editable '.[soak]'
	$(BIN)/python -m pytest -m soak

# make bench BENCH='--quick --only produce,latency'
bench: setup
	$(BIN)/python -m odradek.apps.lab.bench --page . $(BENCH)

# docs/benchmarks.md, its plots and the README's table are made from docs/benchmarks.json; a test compares them.
bench-page: $(ENV)
	$(BIN)/python -m odradek.apps.lab.bench.page

clean:
	rm -rf .venv .tools dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
