#!/usr/bin/env bash
# SimSo 0.8.5 (PyPI; the real-time scheduling simulator of LAAS): schedulers whose papers prove them optimal miss deadlines
# of task sets that they are proved to schedule, with no overhead asked for.
#
# Seen (Python 3.11, simpy 2.3.1), cycles_per_ms = 1000000, 36 ms, all tasks released at 0, deadline = period, in ms:
#   LLF, one processor, (runtime of period) 1 of 2 and 2 of 4: 9 jobs of each task are late. Least laxity first is optimal
#     on one processor. The scheduler wakes up each ms, and each time a constant of 0.001 ms of overhead that stands in its
#     source is charged to the processor, although every overhead of the configuration is 0. With 1.25 % of the processor
#     free nothing is late: only sets that fill the processor show it. EDF misses nothing of the full set.
#   On two processors, 1 of 2, 1 of 3, 2 of 3, 2 of 4 (2.0 in all) and 1 of 2, 2 of 3, 5 of 6 (2.0 in all):
#     RUN is late 3 times in the first, EKG 6 times in the second, LLREF 6 and DP_WRAP 15 times in both together.
#     Shares become whole cycles, rounded, so that jobs end a few cycles early or late; nothing is left over to make up for it.
#     PD2, BF, U_EDF and WC_RUN miss nothing in either.
#
# So a count of misses near full load says something about these five implementations, not about the algorithms: whoever
# compares schedulers by it wants the sets a little below full.
#
# Needs python3 (3.8 or later) with venv, and PyPI. Exit 0: as described; 1: it has changed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q --disable-pip-version-check install simso==0.8.5 simpy==2.3.1 future==1.0.0
cat > "$dir/sets.py" <<'PY'
import contextlib, io, sys
from simso.configuration import Configuration
from simso.core import Model

MS = 1000000

def late(scheduler, processors, tasks, ms=36):
    """How many jobs of each task (runtime, period; both in ms) miss their deadlines."""
    c = Configuration()
    c.cycles_per_ms, c.duration = MS, ms * MS
    for i, (runtime, period) in enumerate(tasks):
        c.add_task(name=f"T{i}", identifier=i, period=period, activation_date=0, wcet=runtime, deadline=period)
    for i in range(processors):
        c.add_processor(name=f"C{i}", identifier=i)
    c.scheduler_info.clas = "simso.schedulers." + scheduler
    c.check_all()
    model = Model(c)
    with contextlib.redirect_stdout(io.StringIO()):
        model.run_model()
    return [t.exceeded_count for t in model.results.tasks.values()]

wrong = []
def wanted(what, holds):
    print(("as described: " if holds else "CHANGED: ") + what)
    if not holds:
        wrong.append(what)

full = [(1, 2), (2, 4)]
llf = late("LLF", 1, full)
wanted(f"LLF, 1 of 2 and 2 of 4 on one processor: {llf} late", llf == [9, 9])
easy = late("LLF", 1, [(1, 2), (1.95, 4)])
wanted(f"LLF with 1.25 % of the processor free: {easy} late", easy == [0, 0])
edf = late("EDF", 1, full)
wanted(f"EDF, the same full set: {edf} late", edf == [0, 0])

of_run, of_ekg = [(1, 2), (1, 3), (2, 3), (2, 4)], [(1, 2), (2, 3), (5, 6)]
both = lambda scheduler: sum(late(scheduler, 2, of_run) + late(scheduler, 2, of_ekg))
run, ekg = late("RUN", 2, of_run), late("EKG", 2, of_ekg)
wanted(f"RUN, the first set on two processors: {run} late", run == [0, 0, 0, 3])
wanted(f"EKG, the second: {ekg} late", ekg == [0, 0, 6])
for other, n in (("LLREF", 6), ("DP_WRAP", 15), ("PD2", 0), ("BF", 0), ("U_EDF", 0), ("WC_RUN", 0)):
    found = both(other)
    wanted(f"{other}, both sets: {found} late", found == n)
sys.exit(1 if wrong else 0)
PY
"$dir/venv/bin/python" "$dir/sets.py"
