#!/usr/bin/env bash
# Asks kernels decision by decision (verify --mode step) about drawn experiments, and keeps what came of it:
# crates/verify/tests/drawn/KERNEL/N.json. Goes on where it stopped.
#
# Usage: scripts/evidence-drawn.sh SECONDS RISETIME…     0 seconds: until all is asked
# Each experiment first on one kernel, by turns, then on the next one: stopped early, all kernels and all
# experiments have been asked something.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
seed=1636148247 # 6185a417, the first digits of the commit before which nobody had looked at them
count=24
kernels=(7.3 7.2 6.12 6.1)
until=$1
shift
for pass in "${!kernels[@]}"; do
    for n in $(seq "$count"); do
        kernel=${kernels[$(((n - 1 + pass) % ${#kernels[@]}))]}
        directory=crates/verify/tests/drawn/$kernel
        [ -f "$directory/$n.json" ] && continue
        [ "$until" -gt 0 ] && [ "$SECONDS" -ge "$until" ] && exit 0
        mkdir -p "$directory"
        "$@" verify "wide-$seed-$n" --mode step --kernel "$kernel" --format json > "$directory/$n.part"
        status=$?
        if [ "$status" -gt 1 ]; then # 1: something differs more often than wanted
            rm -f "$directory/$n.part"
            [ "$status" -eq 130 ] && exit 130
            echo "evidence-drawn: experiment $n on $kernel: NOT ASKED" >&2
            continue
        fi
        mv "$directory/$n.part" "$directory/$n.json"
    done
done
