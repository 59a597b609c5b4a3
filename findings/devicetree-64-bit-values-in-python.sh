#!/usr/bin/env bash
# fdt 0.3.3 and pydevicetree 0.0.13 (PyPI): neither reads the source of any device tree in which Linux's operating points stand.
#
# Seen: the binding operating-points-v2 makes a frequency a 64-bit number, so that every tree of mainline writes
#         opp-hz = /bits/ 64 <1800000000>;
#   fdt.parse_dts            NotImplementedError: Not implemented property value: /bits/
#   Devicetree.parseFile     ParseException at the first node of the file, (line:2, col:1), wherever the number stands
#   Without /bits/ 64 (which is another tree: the kernel reads no frequency from 32 bits) both read the file, and a value of more than one
#   expression, <(50 * 1000)>, is a ValueError in fdt and read by pydevicetree. The flattened tree, as dtc makes it of the same text, is read by
#   fdt.parse_dtb, with each frequency as two 32-bit words, [0, 1800000000].
#
# So capacities, operating points or idle states of a board cannot be taken from its .dts with these two; they have to go through dtc.
#
# Needs python3 (3.9 or later) with venv, PyPI, and apt-get and dpkg of Debian 12; nothing is installed. Exit 0: as described; 1: it has changed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
chmod 755 .
apt-get -qq download device-tree-compiler=1.6.1-4+b1 libfdt1=1.6.1-4+b1 libyaml-0-2 2>/dev/null
for deb in *.deb; do dpkg -x "$deb" unpacked; done
LD_LIBRARY_PATH=$(echo "$dir"/unpacked/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install fdt==0.3.3 pydevicetree==0.0.13
cat > board.dts <<'DTS'
/dts-v1/;
/ {
	opp-table {
		compatible = "operating-points-v2";
		opp-1800000000 {
			opp-hz = /bits/ 64 <1800000000>;
			clock-latency-ns = <50000>;
		};
	};
};
DTS
sed 's,/bits/ 64 ,,' board.dts > narrow.dts
sed 's,50000,(50 * 1000),' narrow.dts > sum.dts
unpacked/usr/bin/dtc -q -I dts -O dtb -o board.dtb board.dts
cat > read.py <<'PY'
import sys
import fdt
from pydevicetree import Devicetree

POINT = "/opp-table/opp-1800000000"


def by_fdt(name):
    try:
        return fdt.parse_dts(open(name).read()).get_node(POINT).get_property("opp-hz").data
    except Exception as e:
        return f"{type(e).__name__}: {e}"


def by_pydevicetree(name):
    try:
        return str(Devicetree.parseFile(name).get_by_path(POINT).get_fields("opp-hz"))
    except Exception as e:
        return f"{type(e).__name__}: {e}"


found = {(read.__name__, name): read(name) for read in (by_fdt, by_pydevicetree) for name in ("board.dts", "narrow.dts", "sum.dts")}
flat = fdt.parse_dtb(open("board.dtb", "rb").read()).get_node(POINT).get_property("opp-hz").data
for key, value in found.items():
    print(*key, value)
print("by_fdt board.dtb", flat)
good = (
    found["by_fdt", "board.dts"] == "NotImplementedError: Not implemented property value: /bits/"
    and found["by_pydevicetree", "board.dts"].startswith("ParseException")
    and "(line:2, col:1)" in found["by_pydevicetree", "board.dts"]
    and found["by_fdt", "narrow.dts"] == [1800000000]
    and found["by_pydevicetree", "narrow.dts"] == "<1800000000>"
    and found["by_fdt", "sum.dts"].startswith("ValueError")
    and found["by_pydevicetree", "sum.dts"] == "<1800000000>"
    and flat == [0, 1800000000]
)
sys.exit(not good)
PY
venv/bin/python read.py
