#!/usr/bin/env bash
# Device trees of Linux 6.1 (Debian 12, linux-image-6.1.0-56-arm64 6.1.192-2): every fifth operating point that an energy model is made of has
# the voltage of the next faster one, and by the kernel's integers three quarters of these pass as efficient.
#
# Seen: of 577 flattened trees, 113 tables of CPU operating points with voltages and a dynamic-power-coefficient, 693 operating points:
#     144  have the voltage of the next faster one (in 97 tables), none a higher one
#      38  of them cost as much as a faster one, or more, as the kernel counts: it marks them inefficient, and schedutil skips them
#     106  cost one part in some hundred thousand less, by rounding alone, and are used: hi6220-hikey's 208 MHz (69966 uW) beside
#          432 MHz (145315 uW, same voltage), the three operating points of r8a774a1's Cortex-A57
#
# At one voltage, power by frequency is the same (P = C * V^2 * f): work takes as much energy at the slower point, and lasts longer. The kernel's
# rule for that (em_create_perf_table) is cost >= that of a faster one, with
#     power = C * mV * mV * (Hz / 1000000) / 1000000          in uW, rounded down twice (drivers/opp/of.c)
#     cost  = fmax * power / f                                rounded down
# so that what was rounded off decides. Whoever skips inefficient points as the kernel does has to round as the kernel does; whoever wants
# the energy has to compare with a tolerance.
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
cat > count.py <<'PY'
import collections, pathlib, struct, sys
import libfdt


def property_of(tree, node, name):
    try:
        return bytes(tree.getprop(node, name))
    except libfdt.FdtException:
        return None


def children(tree, node):
    step = tree.first_subnode
    while True:
        try:
            node = step(node)
        except libfdt.FdtException:
            return
        step = tree.next_subnode
        yield node


def word(data):
    return struct.unpack(">I", data[:4])[0]


def tables(tree):
    """Coefficient and ascending (Hz, uV) of each table of CPU operating points, once."""
    try:
        cpus = tree.path_offset("/cpus")
    except libfdt.FdtException:
        return
    seen = set()
    for cpu in children(tree, cpus):
        if property_of(tree, cpu, "device_type") != b"cpu\0":
            continue
        table, coefficient = (property_of(tree, cpu, n) for n in ("operating-points-v2", "dynamic-power-coefficient"))
        if table is None or table in seen:
            continue
        seen.add(table)
        points = []
        for point in children(tree, tree.node_offset_by_phandle(word(table))):
            hz, uv = (property_of(tree, point, n) for n in ("opp-hz", "opp-microvolt"))
            if hz is not None:
                points.append((struct.unpack(">Q", hz)[0], word(uv) if uv else None))
        if coefficient and points and all(uv for _, uv in points):
            yield word(coefficient), sorted(points)


def inefficient(coefficient, points):
    """The kernel's rule, from the fastest one down."""
    power = [coefficient * (uv // 1000) ** 2 * (hz // 1000000) // 1000000 for hz, uv in points]
    khz = [hz // 1000 for hz, _ in points]
    least, found = None, set()
    for i in reversed(range(len(points))):
        cost = khz[-1] * power[i] // khz[i]
        if least is not None and cost >= least:
            found.add(i)
        else:
            least = cost
    return found


count = collections.Counter()
for path in pathlib.Path(".").rglob("*.dtb"):
    count["trees"] += 1
    for coefficient, points in tables(libfdt.FdtRo(path.read_bytes())):
        volts = [uv for _, uv in points]
        same = {i for i in range(len(points) - 1) if volts[i] == volts[i + 1]}
        marked = inefficient(coefficient, points)
        count["tables"] += 1
        count["points"] += len(points)
        count["same voltage"] += len(same)
        count["tables with one"] += bool(same)
        count["higher voltage"] += sum(volts[i] > volts[i + 1] for i in range(len(points) - 1))
        count["marked"] += len(marked & same)
        count["marked otherwise"] += len(marked - same)
        count["missed"] += len(same - marked)
print(dict(count))
expected = {"trees": 577, "tables": 113, "points": 693, "same voltage": 144, "tables with one": 97, "higher voltage": 0}
expected |= {"marked": 38, "marked otherwise": 0, "missed": 106}
sys.exit(any(count[key] != value for key, value in expected.items()))
PY
venv/bin/python count.py
