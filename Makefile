# vignette. `make help` lists the targets. CLUSTER=existing uses the cluster of the current KUBECONFIG
# instead of building one; IMAGES then says where that cluster pulls the images from.

CLUSTER ?= dev
NAMESPACE ?= vignette-system
DEMO_NAMESPACE ?= vignette-demo
export CGO_ENABLED = 0

VERSION := 0.1.0
GOFLAGS_BUILD := -trimpath -ldflags "-s -w -X main.version=$(VERSION)"
PROGRAMS := operator=./operators/cmd/manager radiod=./images/radiod radio=./images/radiod/radio agent=./images/agent \
	traffic=./images/traffic traffic-zeromq=./images/zeromq mgen-app=./images/mgen mosquitto-statistics=./images/mosquitto server=./images/server console=./images/console vignette=./cmd/vignette

ifeq ($(CLUSTER),existing)
IMAGES ?= vignette
TAG ?= $(VERSION)
WITH_CLUSTER :=
INSTALL_ARGS ?=
CLUSTER_STEPS := 'check the cluster' 'kubectl version && kubectl get nodes'
else
IMAGES := localhost/vignette
TAG := dev
INSTALL_ARGS := --set monitoring.prometheus.enabled=true
WITH_CLUSTER := eval "$$(hack/cluster env)" &&
CLUSTER_STEPS := 'developer cluster' 'hack/cluster up' 'images' 'hack/images --load'
endif
# Only used in pipelines, whose steps are run by a shell.
WITH_EMANE = $$(hack/emane-image --installed && echo --set emane.image=$(IMAGES)/emane:$(TAG))
INSTALL_STEPS := 'build programs' '$(MAKE) -s build' $(CLUSTER_STEPS) 'install the platform' '$(WITH_CLUSTER) hack/install $(NAMESPACE) $(IMAGES) $(TAG) $(INSTALL_ARGS)'

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | column -t -s "$$(printf '\t')"

.PHONY: demo
demo: ## Set up all that is needed, run scenarios/quickstart, print its results
	@hack/pipeline demo $(INSTALL_STEPS) 'run the quickstart' '$(WITH_CLUSTER) hack/demo $(DEMO_NAMESPACE)'

.PHONY: test
test: ## Set up all that is needed, run the tests (others: test-emane, -gitops, -guest, -hosts, -kueue, -long, -restart, -starved, -vm)
	@hack/pipeline test 'programs that tests use' 'hack/test-packages' 'generated files' '$(MAKE) -s verify' 'developer cluster tests' '$(MAKE) -s test-hack' $(INSTALL_STEPS) \
		'tests with the race detector' '$(MAKE) -s test-race' \
		'tests in real time, and beside them those without race detector, of the analysis and the console' \
		'$(MAKE) -s -j4 --output-sync=target BESIDE="chrt --idle 0" test-real-time test-sequential test-analysis test-console' \
		'end-to-end tests' '$(WITH_CLUSTER) $(MAKE) -s test-e2e' 'console in a browser' '$(WITH_CLUSTER) $(MAKE) -s test-browser'

.PHONY: install
install: ## Set up the cluster and install the platform on it
	@hack/pipeline install $(INSTALL_STEPS)

.PHONY: build
build: ## Build the web console and the programs, into bin/
	@hack/console
	@printf '%s\n' $(PROGRAMS) | xargs -P 2 -I{} bash -c 'p={}; go build $(GOFLAGS_BUILD) -o bin/$${p%%=*} $${p#*=}'

# Tests with tight limits of time, which mostly wait: what runs beside them has idle priority, or they fail for what it takes.
REAL_TIME := ./internal/agent ./internal/radio/driver ./internal/radiod $(addprefix ./internal/radiod/,dataplane emaned networks packettap peers samples worker) ./internal/radioqueue ./internal/traffic
# Tests in real time that start an API server and a manager.
API_SERVER_TESTS := OnARealAPIServer
# By default every program that ends waits a second for races of goroutines that are left, and tests start many.
WITH_RACE_DETECTOR := CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 hack/gotest pkgname -race -count=1 -timeout 30m

.PHONY: test-unit
test-unit: test-race test-real-time ## Unit and integration tests of the Go module's concurrent packages, with the race detector

.PHONY: test-race
test-race: ## Those without tight limits of time
	hack/python -c '' # clients of others that some tests hold ours against
	others=$$(go list ./... | grep -vxF "$$(go list $(REAL_TIME); hack/sequential)") && $(WITH_RACE_DETECTOR) -p 3 -skip '$(API_SERVER_TESTS)' ./internal/proxy $$others # many wait; the longest first, so that it ends beside the others
	$(WITH_RACE_DETECTOR) -p 2 -run '$(API_SERVER_TESTS)' ./operators/experiment ./operators/campaign ./images/console

.PHONY: test-real-time
test-real-time: ## Those with tight limits of time
	$(WITH_RACE_DETECTOR) -p 1 -parallel 4 $(REAL_TIME) # those that run beside each other wait most of the time

.PHONY: test-sequential
test-sequential: ## Those of the other packages, without it: also kill the operator after every write, lag its caches, lose its events (VIGNETTE_SWEEP=full: every lag, half an hour); 200 topologies for each version of OLSR; validate every scenario; queue 10 000 requests
	$(BESIDE) hack/gotest pkgname -count=1 -timeout 60m -skip '$(API_SERVER_TESTS)' $$(hack/sequential)
	$(BESIDE) hack/gotest pkgname -count=1 -run QueuedRequestsTakeLittleMemory ./internal/proxy

.PHONY: test-hack
test-hack: ## Unit tests of the developer cluster's and the tools' own modules
	cd hack/devcluster && go test ./...
	cd hack/tools && go test ./...

.PHONY: test-analysis
test-analysis: ## Tests of the Python analysis, its report in headless Chromium
	@hack/test-packages
	$(BESIDE) hack/python -m pytest -q -rs --durations=10 analysis

.PHONY: test-console
test-console: ## Unit tests of the web console
	$(BESIDE) hack/node npm run --silent test

.PHONY: test-browser
test-browser: ## Tests of the web console in Chromium on the cluster of KUBECONFIG (PICTURES=1: draw the documentation's pictures of it)
	@hack/test-packages
	hack/node npm run --silent e2e

.PHONY: test-e2e
test-e2e: ## End-to-end tests against the cluster of KUBECONFIG
	hack/gotest testname -tags e2e -count=1 -timeout 45m -parallel 5 ./test/e2e

.PHONY: tutorials
tutorials: ## Follow the tutorials on the cluster of KUBECONFIG (TUTORIALS=-update: write what they print, and their pictures)
	go test -tags e2e -run TheTutorial -count=1 -timeout 60m -v ./test/e2e $(TUTORIALS)

.PHONY: test-long
test-long: ## The studies' full and short forms, 243 nodes, and the developer cluster's destructive tests (hours)
	@hack/pipeline test-long 'where a company loses messages, in virtual time' 'go test -tags long -run Company -count=1 -timeout 60m -v ./internal/routing' \
		'243 nodes on one loop' 'go test -tags long -run "ManyNodes|RoutesOfFewestHops" -count=1 -timeout 30m -v ./internal/radiod/worker' $(INSTALL_STEPS) \
		'full forms of the studies' '$(WITH_CLUSTER) go test -tags "e2e long" -run Long -count=1 -timeout 6h -v ./test/e2e' \
		'short forms of all studies' '$(WITH_CLUSTER) go test -tags "e2e long" -run ShortFormsOfTheStudies -count=1 -timeout 6h -v ./test/e2e' \
		'developer cluster, destructive' 'cd hack/devcluster && go test -tags e2e -count=1 -timeout 60m ./e2e'

.PHONY: test-hosts
test-hosts: ## Networks over several hosts held against one, in a developer cluster of three (which stays; one of one host: hack/cluster down --purge)
	@hack/pipeline test-hosts 'build programs' '$(MAKE) -s build' 'developer cluster of three' 'hack/cluster down && hack/cluster up --nodes 3' 'images' 'hack/images --load' 'image of EMANE, where it is installed' 'hack/emane-image --load' \
		'install the platform' '$(WITH_CLUSTER) hack/install $(NAMESPACE) $(IMAGES) $(TAG) $(WITH_EMANE) $(INSTALL_ARGS)' 'several hosts' '$(WITH_CLUSTER) go test -tags e2e -run "SeveralHosts|CutOff" -count=1 -timeout 30m -v ./test/e2e'

.PHONY: test-gitops
test-gitops: ## A git repository drives experiments and campaigns through an Argo CD in the developer cluster (builds it first)
	@hack/pipeline test-gitops 'build programs' '$(MAKE) -s build' 'developer cluster with Argo CD' 'hack/cluster up --with argocd' 'images' 'hack/images --load' \
		'install the platform' '$(WITH_CLUSTER) hack/install $(NAMESPACE) $(IMAGES) $(TAG)' 'GitOps' '$(WITH_CLUSTER) go test -tags "e2e gitops" -run GitOps -count=1 -timeout 30m -v ./test/e2e'

.PHONY: test-vm
test-vm: ## Nodes that are virtual machines, in the developer cluster with KubeVirt (builds it first)
	@hack/test-packages guest
	@hack/pipeline test-vm 'build programs' '$(MAKE) -s build' 'developer cluster with KubeVirt' 'hack/cluster up --with kubevirt' 'images' 'hack/images --load --with test-vm' \
		'disks' 'hack/guest-disks bin/guest-disks guest' 'install the platform' '$(WITH_CLUSTER) hack/install $(NAMESPACE) $(IMAGES) $(TAG) $(INSTALL_ARGS)' \
		'virtual machines' '$(WITH_CLUSTER) VIGNETTE_GUEST_DISKS=$(CURDIR)/bin/guest-disks go test -tags "e2e vm" -run "^($$(sed -nE "s/^func (Test[[:alnum:]]+).*/\1/p" test/e2e/vm_*test.go | paste -sd "|"))$$" -count=1 -timeout 40m -v ./test/e2e'

.PHONY: test-kueue
test-kueue: ## Kueue's own manager decides on experiments on a real API server, with kwok's nodes (builds Kueue first)
	go build -o bin/operator ./operators/cmd/manager
	go build -C hack/kwok -o $(CURDIR)/bin/kwok sigs.k8s.io/kwok/cmd/kwok
	go build -C hack/kueue -o $(CURDIR)/bin/kueue sigs.k8s.io/kueue/cmd/kueue
	VIGNETTE_PROGRAMS=$(CURDIR)/bin go test -tags kueue -run Kueue -count=1 -timeout 60m -v ./test/bench/operator

.PHONY: test-starved
test-starved: ## Starve the radio (stops, quota, load) and hold the verdict's bounds against runs that are not starved; needs root (STARVE='-rounds 10' is ten times as long)
	go run ./test/starve $(STARVE)

.PHONY: test-restart
test-restart: ## Stop and start etcd, API server and operator at random moments of a campaign
	go test -tags restart -run WholeCluster -count=1 -timeout 60m -v ./operators/campaign

.PHONY: test-guest
test-guest: ## Boot the image for virtual machines in QEMU, without acceleration and without a cluster, and hold it against the real server
	@hack/test-packages guest
	@hack/pipeline test-guest 'build programs' '$(MAKE) -s build' 'images' 'hack/images guest guest-tools guest-debian' 'disks' 'hack/guest-disks bin/guest-disks guest guest-tools guest-debian' \
		'a virtual machine is a node' 'VIGNETTE_GUEST_DISKS=$(CURDIR)/bin/guest-disks go test -tags guest -count=1 -timeout 30m -v ./test/guest'

.PHONY: bench
bench: ## Measure the link model against its closed forms, the analysis beside pandas and tshark, and how fast nodes are ready
	@hack/pipeline bench 'link model' 'go run ./test/bench/link' 'analysis' 'hack/python analysis/tests/bench.py' 'analysis of captures' 'hack/python analysis/tests/bench_captures.py' $(INSTALL_STEPS) 'control plane' '$(WITH_CLUSTER) go run ./test/bench/controlplane'

.PHONY: bench-radio
bench-radio: ## What link, rfpipe and tdma cost beside a bare TAP hub: CPU per delivered frame, lateness, memory
	go run ./test/bench/radio

.PHONY: bench-protocols
bench-protocols: ## Messages a second, processor time per message and delays of each protocol through its broker on loopback, beside mosquitto_pub and RabbitMQ's perf-test; needs root
	go run ./test/bench/protocols

.PHONY: bench-vm
bench-vm: ## What nodes that are virtual machines cost beside pods: delays over the radio and without it, boot, processors, memory; BENCH='-seconds 300' is longer
	@hack/pipeline bench-vm 'build programs' '$(MAKE) -s build' 'developer cluster with KubeVirt' 'hack/cluster up --with kubevirt' 'images' 'hack/images --load --with guest' \
		'install the platform' '$(WITH_CLUSTER) hack/install $(NAMESPACE) $(IMAGES) $(TAG) $(INSTALL_ARGS)' 'virtual machines beside pods' '$(WITH_CLUSTER) go run ./test/bench/vm $(BENCH)'

.PHONY: bench-operator
bench-operator: ## What the operator costs as experiments grow to 500 of 25 pods on kwok's nodes; BENCH='-experiments 50' is short
	go run ./test/bench/operator $(BENCH)

.PHONY: test-emane
test-emane: ## Test what is for EMANE against the EMANE installed here (on PATH, or VIGNETTE_EMANE=its prefix); without one say so and skip
	@hack/emane-image --installed || echo "EMANE not installed"
	go test -count=1 -v ./internal/emane
	go test -count=1 -v -run EMANE ./internal/radiod/worker
	@if hack/emane-image --installed; then hack/pipeline test-emane $(INSTALL_STEPS) 'image of EMANE' 'hack/emane-image --load' \
		'EMANE in the platform' '$(WITH_CLUSTER) hack/install $(NAMESPACE) $(IMAGES) $(TAG) $(WITH_EMANE)' \
		'both engines in the cluster' '$(WITH_CLUSTER) go test -tags e2e -run EMANE -count=1 -timeout 75m -v ./test/e2e'; fi

.PHONY: bench-engines
bench-engines: ## Hold the native radio models against the EMANE installed here: delay, delivery, throughput, CPU
	go run ./test/bench/engines $(FLAGS)

.PHONY: soak
soak: ## Carry 2000 frames/s for an hour while radiod is killed every 5 minutes, and account for every frame
	go run ./test/bench/soak

.PHONY: fuzz
fuzz: ## Run every fuzzer for FUZZTIME (10m)
	hack/fuzz $(or $(FUZZTIME),10m)

.PHONY: generate
generate: ## Write the generated files: deep copies, CRDs, reference, OpenAPI, the console's types, EMANE's messages, NOTICE
	hack/generate
	hack/notice

.PHONY: verify
verify: ## Fail if a generated file is out of date, or a dependency's licence is not accepted
	hack/generate --verify
	hack/notice --verify

.PHONY: audit
audit: ## Look for known vulnerabilities and licences of dependencies (AUDIT=--strict: fail where a database cannot be reached)
	hack/audit $(AUDIT)

.PHONY: docs
docs: ## Build the documentation as a site into bin/site, with search, for use without a network
	hack/python --lock hack/tools/requirements.lock hack/site/build.py

.PHONY: pictures
pictures: ## Redraw the pictures of the documentation (takes chromium)
	go run ./hack/plots
	go test -count=1 ./internal/cli -run Picture -update
	hack/python -m pytest -q analysis/tests/test_pictures.py --update

.PHONY: lint
lint: ## Vet, format and style checks
	hack/lint

.PHONY: down
down: ## End the developer cluster and leave nothing behind
	hack/cluster down

SHELL := /bin/bash
