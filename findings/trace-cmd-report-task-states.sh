#!/usr/bin/env bash
# trace-cmd 3.1.6 with libtraceevent 1.7.1 (Debian 12): `trace-cmd report` names a task's state at a switch by letters of old kernels, although
# the trace itself says what each bit means, and the same command with -N (no plugins) prints that.
#
# Seen: a trace.dat whose sched_switch has the format that kernels since 4.14 give (its print fmt lists { 0x10, "X" }, { 0x20, "Z" },
#   { 0x40, "P" }, { 0x80, "I" }, and "+" for 0x100), with one switch for each value of prev_state:
#
#     prev_state     0   1   2   4   8  16  32  64  128  256
#     report -N      R   S   D   T   t   X   Z   P   I    R+
#     report         R   S   D   T   t   Z   X   x   W    R
#
#   The plugin for sched_switch that libtraceevent installs by default has a table of its own, from before 2014, and stops at the first bit.
#
# So in the default output a zombie is a dead task and a dead task a zombie, a kernel worker that idles (I) seems to be waking (W), and a
# task that was preempted (R+) looks like one that gave its CPU up while runnable: whoever counts preemptions by the letters counts none.
#
# The file is written here, by the form of trace-cmd.dat.v6(5). Needs python3, apt-get and dpkg of Debian 12 on a 64-bit little-endian
# machine; nothing is installed. Exit 0: as described; 1: it has changed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
chmod 755 .
apt-get -qq download trace-cmd=3.1.6-1 libtracefs1=1.6.4-1 libtraceevent1=1:1.7.1-1 libtraceevent1-plugin=1:1.7.1-1 2>/dev/null
for deb in *.deb; do dpkg -x "$deb" unpacked; done
lib=$(echo "$dir"/unpacked/usr/lib/*-linux-gnu)
export LD_LIBRARY_PATH=$lib TRACEEVENT_PLUGIN_DIR=$lib/traceevent/plugins
cat > write.py <<'PY'
import struct

STATES = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256]
MASK = "(((0x00000000 | 0x00000001 | 0x00000002 | 0x00000004 | 0x00000008 | 0x00000010 | 0x00000020 | 0x00000040) + 1) << 1)"
FORMAT = f'''name: sched_switch
ID: 316
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:2;	size:1;	signed:0;
	field:unsigned char common_preempt_count;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:int prev_prio;	offset:28;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:char next_comm[16];	offset:40;	size:16;	signed:0;
	field:pid_t next_pid;	offset:56;	size:4;	signed:1;
	field:int next_prio;	offset:60;	size:4;	signed:1;

print fmt: "prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & ({MASK} - 1)) ? __print_flags(REC->prev_state & ({MASK} - 1), "|", {{ 0x00000001, "S" }}, {{ 0x00000002, "D" }}, {{ 0x00000004, "T" }}, {{ 0x00000008, "t" }}, {{ 0x00000010, "X" }}, {{ 0x00000020, "Z" }}, {{ 0x00000040, "P" }}, {{ 0x00000080, "I" }}) : "R", REC->prev_state & {MASK} ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio
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

def switch(state):
    comm = "16sii"
    return struct.pack("<HBBi" + comm + "q" + comm, 316, 0, 0, 100, b"worker", 100, 120, state, b"swapper/0", 0, 120)

events = b"".join(struct.pack("<I", 1000 << 5 | len(e) // 4) + e for e in map(switch, STATES))
page = (struct.pack("<QQ", 10**9, len(events)) + events).ljust(4096, b"\0")
out = b"\x17\x08\x44tracing" + text("6") + bytes([0, 8]) + struct.pack("<I", 4096)
out += text("header_page") + sized(PAGE) + text("header_event") + sized(EVENT)
out += struct.pack("<I", 0)                                       # no events of ftrace itself
out += struct.pack("<I", 1) + text("sched") + struct.pack("<I", 1) + sized(FORMAT)
out += struct.pack("<II", 0, 0) + sized("100 worker\n")           # kallsyms, printk, names
out += struct.pack("<I", 1) + text("options  ") + struct.pack("<H", 0) + text("flyrecord")
start = (len(out) + 16 + 4095) // 4096 * 4096
out += struct.pack("<QQ", start, len(page))
open("states.dat", "wb").write(out.ljust(start, b"\0") + page)
PY
python3 write.py
unpacked/usr/bin/trace-cmd report -N -i states.dat 2>/dev/null | sed -n 's/.*prev_state=\([^ ]*\) .*/\1/p' | paste -sd' ' > by-format
unpacked/usr/bin/trace-cmd report -i states.dat 2>/dev/null | sed -n 's/.*\] \([^ ]*\) ==> .*/\1/p' | paste -sd' ' > by-plugin
bad=0
wanted() {
    if [ "$(cat "$1")" = "$2" ]; then echo "as described: $3: $2"; else echo "CHANGED: $3: $(cat "$1")"; bad=1; fi
}
wanted by-format "R S D T t X Z P I R+" "report -N"
wanted by-plugin "R S D T t Z X x W R" "report"
exit $bad
