# Risetime: see `make help`. Everything is built by cargo; only crates are fetched.

CARGO ?= cargo

.PHONY: help demo vm kernel-hz1000 check quick wasm test verify spread scip highs evidence-guarantees evidence-drawn evidence-scores evidence-rt-app bench lint golden doc book fmt clean
.DEFAULT_GOAL := help

help: ## list these targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15

demo: ## build, and show how a Mac mini M1 becomes fast (about a minute the first time)
	@$(CARGO) build --profile demo --locked -p risetime
	@$(CARGO) run --profile demo --locked --quiet -p risetime -- demo

# The tests have one built already.
RISETIME ?= $(CARGO) run --release --locked --quiet --
vm: ## what --backend vm needs: the agent for the guest, a stock kernel, QEMU (about 150 MB, once)
	@command -v rustup >/dev/null && rustup target add aarch64-unknown-linux-musl || true
	@$(CARGO) build --locked --profile guest -p risetime-guest --target aarch64-unknown-linux-musl
	@$(RISETIME) vm setup

kernel-hz1000: ## build an arm64 kernel with HZ=1000 for `--kernel hz1000` (15 minutes of CPU time; VERSION=6.12 for another)
	@scripts/kernel-hz1000.sh $(VERSION)

check: ## does it compile, and do the walls hold? (seconds)
	@$(CARGO) check --locked --workspace --all-targets
	@$(CARGO) test --locked --quiet -p risetime-walls

# Not of it: studies, what the command prints, boots of real kernels.
quick: check ## tests of every crate but studies and the command's pages; the corpus of 1086 experiments
	@$(CARGO) test --locked --quiet --workspace --exclude risetime --exclude risetime-lab --exclude risetime-study --exclude risetime-verify --exclude risetime-vm
	@$(CARGO) test --locked --quiet -p risetime-vm --lib
	@$(CARGO) test --locked --quiet -p risetime-lab --test lab -- corpus guests short_ways
	@$(CARGO) test --locked --quiet -p risetime-verify -- recorded

wasm: ## does what a browser needs compile for it? (needs the Rust target wasm32-unknown-unknown)
	@command -v rustup >/dev/null && rustup target add wasm32-unknown-unknown || true
	@$(CARGO) check --locked --target wasm32-unknown-unknown -p risetime-lab -p risetime-report

test: ## every test; the last line is `N passed, N failed`
	@scripts/test.sh

# The set's drawn half is judged and not recorded; of it not all experiments hold (exit 1).
verify: vm ## boot verify's whole set on a real kernel (half an hour), and record what the tests judge by
	@$(CARGO) run --release --locked --quiet -- verify --all --record crates/verify/tests/recorded || [ $$? -eq 1 ]
	@$(CARGO) test --locked -p risetime-verify recorded

spread: vm ## verify's whole set as figures over 16 start phases (hours the first time; goes on where it stopped)
	@$(CARGO) run --release --locked --quiet -- verify --all --mode spread || [ $$? -eq 1 ]

# Not part of `test`: SCIP comes as a Python package of 160 MB. What it said is recorded, and judged by each test run.
scip: ## ask SCIP for the optimiser's optima again (python3 with pyscipopt)
	@python3 -c 'import pyscipopt' || { echo "make scip: NOT RUN: python3 -m pip install pyscipopt" >&2; exit 3; }
	@$(CARGO) run --release --locked --quiet -p risetime-deploy --example programs | python3 crates/deploy/tests/scip/optimum.py > crates/deploy/tests/scip/optima.csv
	@$(CARGO) test --locked -p risetime-deploy --test deploy scip

# Not part of `test`: HiGHS is C++, and takes some minutes to build. What it said is recorded, and judged by each test run.
highs: ## build HiGHS and ask it for the optimiser's optima again (cmake, g++, libclang-dev; BLESS=1 records what it says)
	@for c in cmake c++; do command -v $$c >/dev/null || { echo "make highs: NOT RUN: sudo apt-get install cmake g++ libclang-dev" >&2; exit 3; }; done
	@$(CARGO) test --release --locked -p risetime --features highs --bin risetime highs
	@$(CARGO) test --locked -p risetime-deploy --test deploy highs

# Goes on where it stopped; what it has recorded is judged by each test run.
evidence-guarantees: ## plan and try random files of needs (FILES, 10000 unless said; SECONDS: stop by itself)
	@$(CARGO) run --release --locked --quiet -p risetime-lab --example guarantees -- run $(or $(FILES),10000) $(SECONDS)
	@$(CARGO) test --locked -p risetime-lab --test lab guarantees

# Goes on where it stopped; what it has recorded is judged by each test run, which runs a figure of each study anew.
evidence-scores: ## how many rows of each study hold, and how many under wrong policies (half an hour)
	@$(CARGO) run --release --locked --quiet -p risetime-study --example scores -- $(STUDY)
	@$(CARGO) test --locked -p risetime-study scores

evidence-rt-app: ## rounds of the packaged rt-app 1.0 beside simulated ones (root; adds what the record lacks)
	@RECORD=1 scripts/rt-app.sh $(CARGO) test --locked -p risetime --test cli rounds
# Goes on where it stopped; what it has recorded is judged by each test run.
evidence-drawn: vm ## 24 drawn experiments decision by decision on 7.3, 7.2, 6.12 and 6.1 (hours the first time; SECONDS: stop by itself)
	@scripts/evidence-drawn.sh $(or $(SECONDS),0) $(CARGO) run --release --locked --quiet --
	@$(CARGO) test --locked -p risetime-verify -- drawn_experiments

bench: ## simulated seconds per second, PELT updates per second
	$(CARGO) bench --locked --workspace --bench '*'

lint: ## formatting and clippy, warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

golden: ## compare with vectors of the kernel's C code: make golden DIR=vectors
	@test -n "$(DIR)" || { echo "make golden: which directory? For example: make golden DIR=crates/kernel/tests/golden" >&2; exit 2; }
	@$(CARGO) run --release --locked --quiet -p risetime-kernel --example golden -- "$(DIR)"

doc: ## the documentation of all crates, in target/doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items

# Not part of `test`, which checks the links: mdBook takes minutes to build.
book: ## README and docs/ as a book, target/book/index.html (installs mdBook into target/tools if it is not there)
	@scripts/book.sh

fmt: ## format the source
	$(CARGO) fmt --all

clean: ## remove what was built
	$(CARGO) clean
