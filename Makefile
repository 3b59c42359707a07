# Everything starts from Python 3.11+ and make. tools/provision.sh installs the programs that are needed and absent.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup compiled lock generate check lint format test alerts dashboard-picture delayed fuzz sanitize interop differential bench soak faults run pipeline \
  wheel image image-test helm kube clean

BIN := .venv/bin
IMAGE ?= localhost/redis-namesrv
export HOME ?= $(shell echo ~)
export PATH := $(CURDIR)/build/go/bin:$(CURDIR)/build/helm/bin:$(PATH):/usr/local/go/bin
unexport PYTHONDONTWRITEBYTECODE # with it, each process of pytest -n rewrites the assertions of all tests
export KUBE_BIN := $(abspath $(or $(KUBE_BIN),build/kube/bin))

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

need-%:
	@tools/provision.sh $*
setup: ## .venv with everything the lock file names
	@tools/setup.sh
compiled: need-cc setup
	@$(BIN)/python hatch_build.py || echo "going on without the compiled transport"
lock: ## write the lock files of requirements/ again
	@tools/lock.sh
generate: setup ## write what follows from the catalogues: docs/options.md, the chart's schema, metrics, alerts, views of reports, the table of imports
	@$(BIN)/python -m tools.options_page && $(BIN)/python -m tools.chart_options && $(BIN)/python -m tools.columns_page \
	  && $(BIN)/python -m tools.metrics_page && $(BIN)/python -m tools.alert_rules && $(BIN)/python -m tools.dashboard
	@$(BIN)/python -m mqpipeline.reports.views > api/report_views.json
	@$(BIN)/python -m tests.architecture write

lint: setup ## style, format, types, the Dockerfile, and that no merge left its marks
	@! git grep -nE '^(<{7}|>{7}) '
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy .
	@$(BIN)/hadolint Dockerfile
format: setup ## let ruff put the code in order
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
check: lint ## lint, and the tests that start no process: for the inner loop, under 90 s
	@$(BIN)/pytest -q -n 2 --dist loadfile @tests/unit.txt $(ARGS)

test: compiled need-redis-server need-curl need-chromium need-helm need-moto need-prometheus ## the tests, on real stores
	@$(BIN)/pytest -n 5 --dist loadfile --no-loadscope-reorder $(addprefix --ignore tests/,alerts interop differential container kube) $(ARGS)
alerts: compiled need-redis-server need-prometheus ## faults of running services, and which alerts fire on them: alone, for they are timed
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder tests/alerts $(ARGS)
dashboard-picture: compiled need-redis-server need-prometheus need-chromium ## panels of the dashboard over three minutes of a service, into docs/dashboard.png
	@$(BIN)/python -m tests.alerts.picture $(ARGS)
delayed: compiled need-redis-server need-curl ## tests of the server, whose workers learn 0.3 s late of each other's changes
	@$(BIN)/pytest -n 10 --dist loadfile --no-loadscope-reorder --follower-delay 0.3 --timeout 300 -k "not uvloop" \
	  $(addprefix tests/,worker api conformance service) $(ARGS)
fuzz: setup ## coverage-guided fuzzing of the decoders and of what judges callers: make fuzz ARGS="INPUTS TARGET ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements/fuzz.txt
	@$(BIN)/python -m tests.fuzz.run $(ARGS)
sanitize: need-cc need-redis-server setup ## the compiled transport with AddressSanitizer and UBSan, tested and fuzzed: make sanitize ARGS=INPUTS
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements/fuzz.txt
	@tools/sanitize.sh $(ARGS)
PEERS := haproxy jdk moto client-cpp client-go client-node
interop: compiled need-redis-server $(PEERS:%=need-%) ## real brokers, clients, mqadmin and Java's name servers against this
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder tests/interop tests/differential --timeout 600 $(ARGS)
differential: compiled need-redis-server need-jdk ## 20,000 random requests to Java's servers and to this one
	@DIFFERENTIAL_EXAMPLES="$${DIFFERENTIAL_EXAMPLES:-600}" $(BIN)/pytest tests/differential -s $(ARGS)

bench: compiled need-redis-server need-jdk ## this server and Java's, side by side on this machine
	@$(BIN)/python -m bench.run $(ARGS)
soak: compiled need-redis-server ## half an hour of mixed load, and whether anything grows
	@$(BIN)/python -m bench.soak $(ARGS)
FAULT_TOOLS := redis-server jdk haproxy faketime iptables ip toxiproxy
faults: compiled $(FAULT_TOOLS:%=need-%) ## the fault table under load, into docs/faults.md (as root)
	@$(BIN)/python -m faults.run $(ARGS)

run: setup ## store, name server, HTTP and jobs on this machine; Ctrl-C ends all
	@tools/run.sh $(ARGS)
pipeline: setup ## tables and reports of the events of `make run` or REDIS_URL; of made-up ones where neither is
	@tools/pipeline.sh $(ARGS)

wheel: compiled ## dist/*.whl: the server, the client (mqns), the pipeline (mqpipeline) and its data source
	@tools/wheels.sh $(BIN)/python dist
image: need-buildah ## the container images: make image BASE=debian where no image registry is reached; or BASE and BUILD_BASE
	@test "$(BASE)" != debian || tools/provision.sh mmdebstrap
	@container/build.sh namesrv $(IMAGE)
	@container/build.sh pipeline $(IMAGE)-pipeline
image-test: export BASE ?= debian
image-test: setup need-redis-server need-podman image ## builds the images and tries them with a read-only root and no rights
	@IMAGE="$(IMAGE)" BASE_IMAGE="$(BASE:debian=localhost/redis-namesrv-base)" \
	container/run_here.sh $(BIN)/pytest tests/container --timeout 600 $(ARGS)
helm: need-helm ## Helm in build/helm/bin where none is installed
kube: setup need-helm need-go need-redis-server need-jdk need-moto ## chart and executor pods on a real API server, built at first: a quarter of an hour
	@GOTOOLCHAIN=auto tests/kube/binaries.sh "$(KUBE_BIN)"
	@PATH="$(KUBE_BIN):$$PATH" $(BIN)/pytest tests/kube --timeout 600 $(ARGS)

clean: ## remove what make made
	@rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache
