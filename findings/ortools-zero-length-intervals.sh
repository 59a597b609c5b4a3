#!/usr/bin/env bash
# OR-Tools 9.15.6755 (PyPI), CP-SAT: two constraints for "one at a time" disagree about an interval of length 0 inside another one.
#
# Seen: A takes 10 from 0 on, Z takes 0 at time 5, on one machine.
#   add_no_overlap([A, Z])               INFEASIBLE
#   add_no_overlap_2d, A and Z in a row   INFEASIBLE, too
#   add_cumulative([A, Z], [1, 1], 1)    OPTIMAL: Z takes nothing there, and may even ask for 2 of a capacity of 1
#   At A's ends, 0 and 10, Z is allowed by both. With Z free to move in 5 to 9 the first still has no answer.
#   A Z whose length is a variable of 0 to 3 is pushed behind A by no_overlap, to time 10, though length 0 would let it be at 5 with cumulative.
#
# So a milestone, a release or a context switch of no cost, or a job whose length a search may shrink to nothing, makes a schedule
# impossible under one spelling of "a single CPU" and costs nothing under the other: a cumulative of capacity 1 is no no_overlap.
#
# Needs python3 (3.9 or later) with venv, and PyPI. Exit 0: as described; 1: it has changed.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" -q --disable-pip-version-check install ortools==9.15.6755
cat > "$dir/zero.py" <<'PY'
import sys
from ortools.sat.python import cp_model

def solved(starts, lengths, how, demand=1):
    """The status, and the earliest start of Z, beside A, which takes 10 from 0 on."""
    m = cp_model.CpModel()
    at, length = m.new_int_var(*starts, "at"), m.new_int_var(*lengths, "length")
    a = m.new_fixed_size_interval_var(0, 10, "A")
    z = m.new_interval_var(at, length, m.new_int_var(0, 100, "end"), "Z")
    if how == "cumulative":
        m.add_cumulative([a, z], [1, demand], 1)
    elif how == "no_overlap":
        m.add_no_overlap([a, z])
    else:
        row = lambda name: m.new_fixed_size_interval_var(0, 1, name)
        m.add_no_overlap_2d([a, z], [row("row A"), row("row Z")])
    m.minimize(at)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.status_name(solver.solve(m))
    return status, solver.value(at) if status == "OPTIMAL" else None

wrong = []
def wanted(what, found, expected):
    holds = found == expected
    print(("as described: " if holds else "CHANGED: ") + f"{what}: {found}")
    if not holds:
        wrong.append(what)

none, inside = (0, 0), (5, 5)
wanted("no_overlap, Z inside", solved(inside, none, "no_overlap"), ("INFEASIBLE", None))
wanted("no_overlap_2d, Z inside", solved(inside, none, "2d"), ("INFEASIBLE", None))
wanted("cumulative, Z inside", solved(inside, none, "cumulative"), ("OPTIMAL", 5))
wanted("cumulative, Z asks for 2 of 1", solved(inside, none, "cumulative", 2), ("OPTIMAL", 5))
for end in (0, 10):
    for how in ("no_overlap", "cumulative"):
        wanted(f"{how}, Z at {end}", solved((end, end), none, how), ("OPTIMAL", end))
wanted("no_overlap, Z anywhere in 5 to 9", solved((5, 9), none, "no_overlap"), ("INFEASIBLE", None))
wanted("no_overlap, length 0 to 3", solved((5, 20), (0, 3), "no_overlap"), ("OPTIMAL", 10))
wanted("cumulative, length 0 to 3", solved((5, 20), (0, 3), "cumulative"), ("OPTIMAL", 5))
sys.exit(1 if wrong else 0)
PY
"$dir/venv/bin/python" "$dir/zero.py"
