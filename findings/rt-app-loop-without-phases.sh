#!/usr/bin/env bash
# rt-app 1.0-1 (Debian 12): `loop` of a task counts only where the task has `phases`; beside the events themselves it is passed over, without a word.
#
# Seen: a round of 1 ms of work and 20 ms of sleep, three times, in a file whose `duration` is 1 s:
#   { "loop": 3, "phases": { "p": { "run": 1000, "sleep": 20000 } } }      3 rounds, and the run ends after them
#   { "loop": 3, "run": 1000, "sleep": 20000 }                             rounds until the second is over: some 36 here
#   { "loop": 3, "phases": { "p": { "loop": 2, … } } }                     6 rounds: in a phase it counts, too
#
#   It is as if the key were that of a single phase of a task that repeats for ever. The tutorial's examples in the package have "loop": -1 there,
#   where this cannot be seen.
#
# So the short form of a file is not the long one with less to write: a task that is to do a fixed amount of work goes on as long as the run, and with
# the usual `"duration": -1` does not end at all, which looks like a machine that is busier than the file says.
#
# Needs apt-get and dpkg of Debian 12; nothing is installed, no rights are needed. Exit 0: as described; 1: it has changed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
chmod 755 .
apt-get -qq download rt-app=1.0-1 libjson-c5=0.16-2 2>/dev/null
for deb in *.deb; do dpkg -x "$deb" unpacked; done
export LD_LIBRARY_PATH=$(echo "$dir"/unpacked/usr/lib/*-linux-gnu)
# Prints the number of rounds of a task: its lines in rt-app's log.
rounds() {
    cat > "$1.json" <<JSON
{ "tasks": { "t": $2 },
  "global": { "duration": 1, "calibration": 100, "default_policy": "SCHED_OTHER", "logdir": "$dir", "log_basename": "$1", "gnuplot": false } }
JSON
    unpacked/usr/bin/rt-app "$1.json" > /dev/null 2> said
    if grep -qi loop said; then echo "CHANGED: it says: $(grep -i loop said | head -1)" >&2; fi
    grep -vc '^#' "$1"-t-0.log
}
bad=0
wanted() {
    if [ "$2" "$3" "$4" ]; then echo "as described: $1: $2 rounds"; else echo "CHANGED: $1: $2 rounds"; bad=1; fi
}
wanted "loop 3 with phases" "$(rounds phases '{ "loop": 3, "phases": { "p": { "run": 1000, "sleep": 20000 } } }')" -eq 3
wanted "loop 3 without phases (3 are asked for)" "$(rounds flat '{ "loop": 3, "run": 1000, "sleep": 20000 }')" -gt 9
wanted "loop 3 of a phase with loop 2" "$(rounds both '{ "loop": 3, "phases": { "p": { "loop": 2, "run": 1000, "sleep": 20000 } } }')" -eq 6
exit $bad
