# make demo    profile, plan, build and load a small generated data set
# make test    every test of the project, as CI runs them
# make help    the rest

.DEFAULT_GOAL := help
.PHONY: help setup build-tools build demo test sanitize lint unit book cli-reference package fuzz fuzz-corpus python-wheel python-dev python-test test-remote wheels wheels-import deny msrv test-tensorflow test-torch test-gpu test-arm bench bench-large bench-l3 bench-arm bench-domains bench-presto bench-compression bench-liquid bench-dl2 bench-augmentations bench-truth bench-peers bench-remote clean
SHELL := bash

# Of CPU time, for each target. Where a longer run is wanted: make fuzz FUZZ_SECONDS=3600
FUZZ_SECONDS ?= 5
# Of the mutations; 0: others each time.
FUZZ_SEED ?= 0
# A Python that has torch and torchvision.
TORCH_PYTHON ?= .venv/bin/python
IMAGES ?= $(firstword $(wildcard ../shared/data/images-png-hd/*.png))
LARGE_IMAGES ?= ../shared/data/images-png-hd
PHOTOS ?= $(firstword $(wildcard ../shared/data/images-jpeg) demo/photos)

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## Install the build tools into the checkout
	@tools/setup.sh

# The tests' Python packages take half a minute to install: the program is built without.
build-tools:
	@tools/setup.sh build

build: build-tools ## Build the program: target/release/forebay
	cargo build --release --package forebay-cli

demo: build ## Generate a small data set, and profile, plan, build and load it
	target/release/forebay demo --folder demo

test: setup lint unit python-test fuzz ## Every test of the project

sanitize: setup ## Tests under AddressSanitizer, ThreadSanitizer and valgrind (long)
	tools/sanitize.sh

lint: setup book ## Formatting, spelling, lints, documentation and its site
	cargo fmt --all --check
	.venv/bin/typos
	.venv/bin/ruff check --quiet
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --quiet

# The longest tests wait most of their time, for storage that is made slow: so more of them at once than there are cores.
unit: setup ## Unit, integration and documentation tests
	RUST_TEST_THREADS=$$((2 * $$(nproc))) cargo test --workspace

python-wheel: setup ## Build the Python package as it is released, and install it into .venv
	rm -rf target/wheels
	.venv/bin/maturin build --quiet --release --out target/wheels --interpreter .venv/bin/python
	.venv/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/*.whl

# With the profile that the other tests use, so that what they share is built once: not for measuring.
python-dev: setup
	rm -rf target/wheels-dev
	.venv/bin/maturin build --quiet --profile dev --out target/wheels-dev --interpreter .venv/bin/python
	.venv/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels-dev/*.whl

wheels: setup ## Wheels for old and new Linux, x86-64 and aarch64, checked by auditwheel and imported
	tools/wheels.sh

wheels-import: ## Only the last of these: import the wheel of target/release-wheels that is for this machine
	tools/wheels.sh import

deny: ## Licenses, advisories and sources of what is linked, by cargo-deny, which it installs below target (some minutes)
	tools/deny.sh

msrv: setup ## Compile with the oldest Rust that Cargo.toml promises, which it installs by rustup, and test the published crates with it
	tools/msrv.sh

book: setup ## The documentation site, in target/book
	tools/book.sh

cli-reference: setup ## Write docs/cli.md, the page of all commands, from what the program says of itself
	FOREBAY_WRITE_REFERENCE=1 cargo test --package forebay-cli --test it -- --exact surface::the_reference_is_what_the_program_says

package: setup ## The crates that stand on their own, as they would be published
	cargo package --quiet --allow-dirty -p forebay-l3 -p forebay-jpeg -p forebay-png

python-test: python-dev ## Build the Python package, install it into .venv, and test it there
	.venv/bin/mypy
	tools/remote_servers.sh
	.venv/bin/python -m pytest --numprocesses $$((1 + $$(nproc))) --dist loadgroup -m 'not timed'
	.venv/bin/python -m pytest -m timed

# What cannot be installed is an error here, and a skipped test in `make test`, which installs no Ray. PyTorch and Lightning are not installed here either:
# the examples that are skipped for want of them are named, with what to install.
test-remote: python-dev ## Buckets on real servers (SeaweedFS, moto, Azurite) and builds and training on Ray, which it installs
	tools/remote_servers.sh required
	FOREBAY_REMOTE=required .venv/bin/python -m pytest python/tests/test_remote.py python/tests/test_remote_servers.py python/tests/test_azure.py python/tests/test_ray.py python/tests/test_clusters.py
	FOREBAY_KILLS=50 cargo test --package forebay-cli --test it killed

test-torch: python-dev ## The Python package with PyTorch, by Debian's packages (150 MB)
	tools/test-torch.sh

test-tensorflow: setup ## Shards and TensorFlow: each reads what the other wrote; installs it below target (300 MB)
	tools/test-tensorflow.sh

test-gpu: python-dev ## The kernels of forebay.gpu, interpreted and compiled for GPUs, with Triton, which it installs (300 MB)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check 'triton>=3.2'
	.venv/bin/python -m pytest python/tests/test_gpu.py
	.venv/bin/python bench/gpu/compile.py

test-arm: setup ## The kernels for 64-bit ARM, compiled and run by qemu where Debian's packages for that are installed
	tools/arm.sh test

fuzz: setup ## Fuzz every parser, sanitized, for FUZZ_SECONDS each; PNG compared with libpng
	.venv/bin/python tools/fuzz.py run --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)
	.venv/bin/python tools/fuzz_png.py

fuzz-corpus: setup ## Grow the kept fuzz inputs from inputs of our own, and minimize them
	.venv/bin/python tools/fuzz.py keep --seconds $(FUZZ_SECONDS)

bench: setup ## Our code compared with the libraries that it uses: ratios
	cargo build --release --package forebay-cli --package forebay-bench
	test -d "$(PHOTOS)" || target/release/forebay demo --folder demo --data-only
	target/release/forebay-bench "$(PHOTOS)" --output bench/results/core.md

bench-large: setup ## Large images through the loader: CPU time compared with decoding alone
	cargo build --release --package forebay-bench
	target/release/forebay-bench "$(LARGE_IMAGES)" --large bench/results/large.md

bench-augmentations: setup ## Augmentations compared with torchvision's: images per second on one core (TORCH_PYTHON has torchvision)
	cargo build --release --package forebay-pipeline --example augmentations
	$(TORCH_PYTHON) bench/augmentations/run.py

bench-l3: setup ## The L3 format compared with other lossless formats
	cargo run --release --quiet --manifest-path bench/l3/Cargo.toml --target-dir target/bench-l3 -- bench/results/l3.md

# Images are named: make bench-arm IMAGES=photo.png
bench-arm: ## Instructions of decoding L3 and PNG on 64-bit ARM, counted by qemu
	tools/arm.sh count $(IMAGES)

bench-domains: setup ## Audio, signals and text compared with the usual Python stack, which it installs
	.venv/bin/python bench/domains/run.py

# Options go to the script: make bench-presto PRESTO='--only nlp,flac'
bench-presto: setup build ## PRESTO's seven pipelines: measuring everything, and --fast
	.venv/bin/python bench/presto/run.py $(PRESTO)

# Options go to the script: make bench-compression COMPRESSION='--only nlp --settings hdd'
bench-compression: setup build ## The planner's choice of compression compared with a study of all
	.venv/bin/python bench/compression/run.py $(COMPRESSION)

# Options go to the script: make bench-liquid LIQUID='--samples 200 --epochs 3'
bench-liquid: setup build ## Mixes of formats and their buffer compared with one format, MinIO and the page cache
	.venv/bin/python bench/liquid/run.py $(LIQUID)

# Options go to the script: make bench-dl2 DL2='--only diagnose --small'
bench-dl2: setup build ## Diagnosed stalls compared with constructed ones
	.venv/bin/python bench/dl2/run.py $(DL2)

# Options go to the script: make bench-truth TRUTH='--only cv --settings ssd'
bench-truth: setup build ## Profiles compared with independent loads
	.venv/bin/python bench/truth/run.py $(TRUTH)

# Options go to the script: make bench-peers PEERS='--only forebay,dali --wait-quiet'
bench-peers: setup ## Our loader compared with others, which it installs (13 GB)
	cargo build --release --package forebay-cli
	rm -rf target/bench-peers/wheels
	.venv/bin/maturin build --quiet --release --out target/bench-peers/wheels --interpreter .venv/bin/python
	.venv/bin/python bench/peers/run.py $(PEERS)

# Options go to the script: make bench-remote REMOTE='--only forebay,webdataset --rounds 1'
bench-remote: setup ## Our loader compared with others on a store with a latency and a bandwidth; installs them (6 GB), and needs 15 GB more
	rm -rf target/bench-remote/wheels
	.venv/bin/maturin build --quiet --release --out target/bench-remote/wheels --interpreter .venv/bin/python
	.venv/bin/python bench/remote/run.py $(REMOTE)

clean: ## Remove what was built, not the tools
	cargo clean
	rm -rf demo
