#!/usr/bin/env bash
# trace-cmd 3.1.6 (Debian 12): `trace-cmd report` shows the first event behind a loss in an instance's buffer as one of the top buffer.
#
# Seen: a trace.dat with the top buffer and two instances; the second page of `inst` says that 7 events before it were lost:
#
#     inst:  …-201   [000]     1.000007: sched_switch: …
#     inst: CPU:0 [7 EVENTS DROPPED]
#            …-300   [000]     1.000101: sched_switch: …        an event of inst, without its prefix
#     inst:  …-301   [000]     1.000102: sched_switch: …
#
#   Every line of an instance begins with the instance's name, but the prefix is printed before the line about the loss, which takes it, and
#   not again. So it is with the other instance, of which 3 were lost.
#
# Who tells instances apart by the prefix (there is no other mark in the text) gets one event too many in the top buffer for each loss, and
# one too few where it was: a switch that nobody of that buffer made.
#
# The file is written here, by the form of trace-cmd.dat.v6(5). Needs python3, apt-get and dpkg of Debian 12 on a 64-bit little-endian
# machine; nothing is installed. Exit 0: as described; 1: it has changed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
chmod 755 .
apt-get -qq download trace-cmd=3.1.6-1 libtracefs1=1.6.4-1 libtraceevent1=1:1.7.1-1 2>/dev/null
for deb in *.deb; do dpkg -x "$deb" unpacked; done
export LD_LIBRARY_PATH=$(echo "$dir"/unpacked/usr/lib/*-linux-gnu)
cat > write.py <<'PY'
import struct

FORMAT = '''name: step
ID: 400
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:int number;	offset:8;	size:4;	signed:1;

print fmt: "number=%d", REC->number
'''
PAGE = '''	field: u64 timestamp;	offset:0;	size:8;	signed:0;
	field: local_t commit;	offset:8;	size:8;	signed:1;
	field: int overwrite;	offset:8;	size:1;	signed:1;
	field: char data;	offset:16;	size:4080;	signed:1;
'''
EVENT = '''# compressed entry header
	type_len    :    5 bits
	time_delta  :   27 bits
	array       :   32 bits

	padding     : type == 29
	time_extend : type == 30
	time_stamp : type == 31
	data max type_len  == 28
'''

def text(s):
    return s.encode() + b"\0"

def sized(s):
    return struct.pack("<Q", len(s)) + s.encode()

def page(numbers, at, lost=None):
    """A page of events; bits 31 and 30 of its length say that events were lost before it, and that how many stands behind the last."""
    event = lambda n: struct.pack("<I", 1000 << 5 | 3) + struct.pack("<HBBii", 400, 0, 0, 100, n)
    data = b"".join(map(event, numbers))
    length = len(data)
    if lost is not None:
        data += struct.pack("<Q", lost)
        length |= 1 << 31 | 1 << 30
    return (struct.pack("<QQ", at, length) + data).ljust(4096, b"\0")

top = page([1, 2], 10**9)
instances = {
    "inst": page([11, 12], 10**9 + 5000) + page([13, 14], 10**9 + 100_000, lost=7),
    "other": page([21, 22], 10**9 + 200_000) + page([23, 24], 10**9 + 300_000, lost=3),
}
out = b"\x17\x08\x44tracing" + text("6") + bytes([0, 8]) + struct.pack("<I", 4096)
out += text("header_page") + sized(PAGE) + text("header_event") + sized(EVENT)
out += struct.pack("<I", 0)                                       # no events of ftrace itself
out += struct.pack("<I", 1) + text("probes") + struct.pack("<I", 1) + sized(FORMAT)
out += struct.pack("<II", 0, 0) + sized("100 worker\n")           # kallsyms, printk, names
out += struct.pack("<I", 1) + text("options  ")
# An option for each instance (3: a buffer): where its section is, and its name.
sections = len(out) + sum(6 + 8 + len(text(name)) for name in instances) + 2
each = len(text("flyrecord")) + 16
data = (sections + each * (1 + len(instances)) + 4095) // 4096 * 4096
for n, name in enumerate(instances):
    option = struct.pack("<Q", sections + each * (n + 1)) + text(name)
    out += struct.pack("<HI", 3, len(option)) + option
out += struct.pack("<H", 0)
pages = b""
for of in [top, *instances.values()]:
    out += text("flyrecord") + struct.pack("<QQ", data + len(pages), len(of))
    pages += of
open("lost.dat", "wb").write(out.ljust(data, b"\0") + pages)
PY
python3 write.py
unpacked/usr/bin/trace-cmd report -i lost.dat 2>/dev/null > report
bad=0
wanted() {
    found=$(sed -n "$2" report | paste -sd' ')
    if [ "$found" = "$3" ]; then echo "as described: $1: $3"; else echo "CHANGED: $1: $found"; bad=1; fi
}
wanted "losses" 's/^ *\(.*DROPPED\]\).*/\1/p' "inst: CPU:0 [7 EVENTS DROPPED] other: CPU:0 [3 EVENTS DROPPED]"
wanted "events called inst's (11 to 14 are)" 's/^ *inst: .*number=//p' "11 12 14"
wanted "events called other's (21 to 24 are)" 's/^ *other: .*number=//p' "21 22 24"
wanted "events without a name (1 and 2 have none)" '/^ *[a-z]*: /!s/.*number=//p' "1 2 13 23"
exit $bad
