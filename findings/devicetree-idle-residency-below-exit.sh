#!/usr/bin/env bash
# Device trees of Linux 6.1 (Debian 12, linux-image-6.1.0-56-arm64 6.1.192-2): eight say of idle states that they pay after less time than
# they take to get in and out.
#
# Seen: of 577 flattened trees 22 idle states in 8 trees have a min-residency-us below entry-latency-us + exit-latency-us, in us:
#   seven boards with SDM630, SDM636, SDM660 or SDA660 (six phones, one board for developers):
#     cpu-sleep-0-0   entry 338, exit  423, min-residency  200
#     cpu-sleep-0-1   entry 515, exit 1821, min-residency 1000
#     cpu-sleep-1-0   entry 154, exit   87, min-residency  200
#   hi3660-hikey960:
#     cluster-sleep-1 entry 800, exit 2900, min-residency 3500
#   Of the first two even the way out alone is longer than the time after which the state is said to pay. All other states are in order.
#
# The binding (idle-states.yaml) defines min-residency-us as the time, with preparation and entry in it, after which a state saves energy:
# in less than it takes to get in and out nothing can be saved. The kernel takes both numbers as they are: its governors compare the idle
# time that they expect with the residency, so that a CPU that will sleep for 1.1 ms is sent into a state from which it is back after 2.3 ms.
# Whoever reads idle states from device trees has to expect this, and may not take the residency as a bound of the latencies.
#
# Needs python3 (3.9 or later) with venv, PyPI (pylibfdt), and apt-get and dpkg of Debian 12; nothing is installed, 60 MB are fetched. Exit 0: as
# described; 1: it has changed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
chmod 755 .
mkdir -p state/lists/partial cache/archives/partial
# Lists of packages for arm64, beside those of this machine.
arm64() {
    local tool=$1
    shift
    "$tool" -qq -o Dir::State="$dir/state" -o Dir::State::status=/dev/null -o Dir::Cache="$dir/cache" \
        -o APT::Architecture=arm64 -o APT::Architectures::=arm64 "$@"
}
arm64 apt-get update
arm64 apt-get download linux-image-6.1.0-56-arm64=6.1.192-2 2>/dev/null
dpkg --fsys-tarfile linux-image-*.deb | tar -x --wildcards './usr/lib/linux-image-*'
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install pylibfdt==1.7.2.post2
cat > read.py <<'PY'
import collections, os, pathlib, sys
import libfdt

KEYS = ["entry-latency-us", "exit-latency-us", "min-residency-us"]

def states(path):
    """Name and numbers of each idle state that has all three."""
    tree = libfdt.Fdt(path.read_bytes())
    quiet = [libfdt.NOTFOUND]
    parent = tree.path_offset("/cpus/idle-states", quiet)
    node = tree.first_subnode(parent, quiet) if parent >= 0 else -1
    while node >= 0:
        found = [tree.getprop(node, key, quiet) for key in KEYS]
        if all(isinstance(value, libfdt.Property) for value in found):
            yield tree.get_name(node), tuple(value.as_uint32() for value in found)
        node = tree.next_subnode(node, quiet)

trees, below = 0, []
for path in sorted(pathlib.Path("usr/lib").rglob("*.dtb")):
    trees += 1
    below += [(path.stem, name, of) for name, of in states(path) if of[2] < of[0] + of[1]]

wrong = []
def wanted(what, found, expected):
    holds = found == expected
    print(("as described: " if holds else "CHANGED: ") + f"{what}: {found}")
    if not holds:
        wrong.append(what)

wanted("trees", trees, 577)
wanted("states below, in trees", (len(below), len({tree for tree, _, _ in below})), (22, 8))
kinds = collections.Counter((name, of) for _, name, of in below)
wanted("kinds of them", dict(kinds), {
    ("cluster-sleep-1", (800, 2900, 3500)): 1,
    ("cpu-sleep-0-0", (338, 423, 200)): 7,
    ("cpu-sleep-0-1", (515, 1821, 1000)): 7,
    ("cpu-sleep-1-0", (154, 87, 200)): 7,
})
sdm = {tree for tree, name, _ in below if name.startswith("cpu-sleep")}
wanted("boards of the SDM6xx", sorted({tree[:6] for tree in sdm}), ["sda660", "sdm630", "sdm636", "sdm660"])
sys.exit(1 if wrong else 0)
PY
venv/bin/python read.py
