#!/usr/bin/env bash
# Runs every test and ends with `N passed, N failed`.
#
# Exit status: 0 all passed, 1 something failed, 3 something could not run here (and is named).
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

passed=0 failed=0
missing=()

finish() {
    for what in ${missing[@]+"${missing[@]}"}; do
        echo "NOT RUN: $what"
    done
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ] || exit 1
    [ "${#missing[@]}" -eq 0 ] || exit 3
    exit 0
}

# --- What the tests need -----------------------------------------------------------------------
need() { # need COMMAND PACKAGE: collects what has to be installed
    command -v "$1" >/dev/null || packages+=("$2")
}
packages=()
need cc gcc
need cargo cargo
if [ "${#packages[@]}" -gt 0 ]; then
    echo "sudo apt-get install ${packages[*]}    # needs Rust 1.89 or later; if the package is older: https://rustup.rs"
    missing+=("all tests: ${packages[*]} not installed")
    finish
fi
# The oracle that is the running kernel itself.
skip=()
if ! grep -qs '^se.avg.util_est ' /proc/self/sched || [ "$(nproc)" -lt 2 ]; then
    skip=(--skip pelt_agrees_with_the_running_kernel)
    missing+=("PELT beside the running kernel: needs two CPUs and the load tracking in /proc/PID/sched (Linux 6.8 or later; before 6.15 with CONFIG_SCHED_DEBUG)")
fi

# How many instructions commands take: by valgrind, which is unpacked and not installed where it is not there.
unpacked=$(realpath -m "${CARGO_TARGET_DIR:-target}")/tools/valgrind
if ! command -v valgrind >/dev/null && [ ! -x "$unpacked/usr/bin/valgrind" ]; then
    mkdir -p "$unpacked" && (cd "$unpacked" && apt-get download -q valgrind && dpkg-deb -x valgrind_*.deb .)
fi
if ! command -v valgrind >/dev/null && [ -x "$unpacked/usr/bin/valgrind" ]; then
    export PATH="$unpacked/usr/bin:$PATH" VALGRIND_LIB="$unpacked/usr/libexec/valgrind"
fi
if ! command -v valgrind >/dev/null; then
    skip+=(--skip instructions_are_not_more_than_recorded)
    missing+=("instructions of six commands: needs valgrind (sudo apt-get install valgrind)")
fi

. scripts/rt-app.sh
if ! command -v rt-app >/dev/null || [ "$(id -u)" -ne 0 ]; then
    skip+=(--skip packaged_rt_app_)
    missing+=("tests beside rt-app 1.0: needs rt-app (sudo apt-get install rt-app) and root, for its real-time tasks")
fi

# Examples are compiled by clippy, below; only `golden` is run, and linked. Documentation has tests of its own.
targets=(--lib --bins --tests)
# What does not compile fails below, where it is told.
cargo test --locked --workspace "${targets[@]}" --no-run
cargo build --locked --workspace --profile test --example golden
# A real kernel in a virtual machine: its agent, a stock kernel and QEMU, cached after the first time. What comes from the network
# does so while clippy is at work.
make vm RISETIME="${CARGO_TARGET_DIR:-target}/debug/risetime" &
vm=$!

# --- Formatting and clippy ----------------------------------------------------------------------
lint=failed
if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then
    make lint && lint=passed
else
    lint=missing
    cargo check --locked --workspace --all-targets || lint=failed
    missing+=("make lint: needs rustfmt and clippy (rustup component add rustfmt clippy, or sudo apt-get install rustfmt rust-clippy)")
fi

# --- What a browser needs ------------------------------------------------------------------------
wasm=failed
if rustup target list --installed 2>/dev/null | grep -q wasm32-unknown-unknown ||
    rustup target add wasm32-unknown-unknown 2>/dev/null; then
    make wasm && wasm=passed
else
    wasm=missing
    missing+=("make wasm: needs the Rust target wasm32-unknown-unknown (rustup target add wasm32-unknown-unknown)")
fi

if ! wait "$vm"; then
    skip+=(--skip real_kernel_)
    missing+=("tests on a real kernel: \`make vm\` failed (see above; it needs rustup or the Rust target aarch64-unknown-linux-musl, apt and a network)")
fi

# --- Every test of every crate, doc tests too --------------------------------------------------
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

export CARGO_TERM_COLOR=never
status=0
for what in "${targets[*]}" --doc; do
    # shellcheck disable=SC2086
    command=(cargo test --locked --workspace $what --no-fail-fast -- ${skip[@]+"${skip[@]}"})
    echo "${command[*]}"
    "${command[@]}" 2>&1 | tee -a "$log"
    [ "${PIPESTATUS[0]}" -eq 0 ] || status=1
done
# "test result: ok. 31 passed; 0 failed; 0 ignored; ...": an ignored test counts as failed, so that
# none is skipped in silence.
read -r passed failed < <(awk '/^test result:/ { p += $4; f += $6 + $8 } END { print p + 0, f + 0 }' "$log")
# It did not build, or a test binary died before it could count.
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1

for outcome in "$lint" "$wasm"; do
    case $outcome in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
    esac
done

# --- SCIP and HiGHS ------------------------------------------------------------------------------
# SCIP's optima are recorded, and judged above; it is asked anew by `make scip` alone. The same for HiGHS.
if python3 -c 'import pyscipopt' 2>/dev/null; then
    echo "NOTE: SCIP was not asked anew: \`make scip\` does (minutes); its recorded optima were judged"
else
    echo "NOTE: SCIP was not asked anew, and cannot be here (python3 -m pip install pyscipopt, then \`make scip\`); its recorded optima were judged"
fi
echo "NOTE: HiGHS was not built and not asked: \`make highs\` does (cmake, g++, libclang-dev; minutes); its recorded answers were judged"

# --- The golden vectors, as `make golden` reads them --------------------------------------------
vectors=crates/kernel/tests/golden
echo "golden $vectors"
# Built with all tests. `cargo run -p` would build it again, with what its benchmarks need, which has other features there.
if "${CARGO_TARGET_DIR:-target}/debug/examples/golden" "$vectors"; then
    passed=$((passed + 1))
else
    failed=$((failed + 1))
fi

finish
