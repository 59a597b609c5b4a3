"""The optimiser's program as it is, products and all, for SCIP: the power that is least, and with it the least slack's largest value.

    pip install pyscipopt
    cargo run --release -p risetime-deploy --example programs | python3 crates/deploy/tests/scip/optimum.py > crates/deploy/tests/scip/optima.csv

Written from docs/optimiser.md, not from the Rust code: places, OPPs and deadlines, quadratic constraints for what a node takes of its CPU
and for what it costs at its domain's OPP. One line of JSON in, one line of CSV out.
"""

import json
import sys

from pyscipopt import Model, quicksum

PERIOD_MIN_US = 100


def written(p, most_mw=None):
    m = Model()
    m.hideOutput()
    m.setParam("limits/gap", 0.0)
    m.setParam("numerics/feastol", 1e-8)
    nodes, domains = p["nodes"], p["domains"]
    cpus = [j for j, d in enumerate(domains) for _ in range(d["cpus"])]
    x = [[m.addVar(vtype="B") for _ in cpus] for _ in nodes]
    z = [[m.addVar(vtype="B") for _ in v["versions"]] for v in nodes]
    o = [[m.addVar(vtype="B") for _ in d["opps"]] for d in domains]
    for d in o:
        m.addCons(quicksum(d) == 1)
    share, deadline, done = [], [], []
    lam = m.addVar(lb=0, ub=1)
    for i, v in enumerate(nodes):
        g = p["graphs"][v["graph"]]
        m.addCons(quicksum(x[i]) + quicksum(z[i]) == 1)
        # What it takes of its CPU up to its deadline: share · deadline ≥ budget. In units of the graph's deadline.
        u = m.addVar(lb=0, ub=1)
        t = m.addVar(lb=0, ub=1)
        budget = quicksum(x[i][k] * (v["budget_us"][j] / g["deadline_us"]) for k, j in enumerate(cpus))
        m.addCons(u * t >= budget)
        m.addCons(t >= quicksum(x[i]) * (PERIOD_MIN_US / g["deadline_us"]))
        share.append(u)
        deadline.append(t)
        done.append(m.addVar(lb=0, ub=1))
    used = [m.addVar(vtype="B") for _ in cpus]
    for k, j in enumerate(cpus):
        parts = []
        for i in range(len(nodes)):
            h = m.addVar(lb=0, ub=1)
            m.addCons(h >= share[i] - (1 - x[i][k]))
            m.addCons(x[i][k] <= used[k])
            parts.append(h)
        room = quicksum(o[j][n] * (opp["room_ppm"] / 1e6) for n, opp in enumerate(domains[j]["opps"]))
        m.addCons(quicksum(parts) <= room)
    asked = [m.addVar(vtype="B") for _ in p["devices"]]
    for device in range(len(p["devices"])):
        here = [(i, a, w) for i, v in enumerate(nodes) for a, w in enumerate(v["versions"]) if w["device"] == device]
        total = quicksum(z[i][a] * w["runtime_us"] for i, a, w in here)
        bound = sum(w["runtime_us"] for _, _, w in here)
        for i, a, _ in here:
            unit = p["graphs"][nodes[i]["graph"]]["deadline_us"]
            m.addCons(deadline[i] * unit >= total - bound * (1 - z[i][a]))
            m.addCons(z[i][a] <= asked[device])
    for i, v in enumerate(nodes):
        unit = p["graphs"][v["graph"]]["deadline_us"]
        own = deadline[i] + quicksum(x[i][k] * ((1 + domains[j]["wake_us"]) / unit) for k, j in enumerate(cpus))
        for before in [done[a] for a in v["after"]] or [0]:
            m.addCons(done[i] >= before + own)
    for g in p["graphs"]:
        m.addCons(done[g["last"]] <= lam)
    mw = m.addVar(lb=0)
    cost = [p["base_nw"] / 1e6]
    for i, v in enumerate(nodes):
        period = p["graphs"][v["graph"]]["period_us"]
        for k, j in enumerate(cpus):
            for n, opp in enumerate(domains[j]["opps"]):
                speed = domains[j]["capacity"] / 1024 * opp["khz"] / domains[j]["opps"][-1]["khz"]
                cost.append(x[i][k] * o[j][n] * (v["work_us"][j] / speed / period * opp["busy_uw"] / 1e3))
        for a, w in enumerate(v["versions"]):
            cost.append(z[i][a] * (w["power_nw"] / 1e6))
    cost += [used[k] * (domains[j]["used_nw"] / 1e6) for k, j in enumerate(cpus)]
    cost += [asked[i] * (nw / 1e6) for i, nw in enumerate(p["devices"])]
    m.addCons(mw >= quicksum(cost))
    if most_mw is None:
        m.setObjective(mw)
    else:
        m.addCons(mw <= most_mw)
        m.setObjective(lam)
    m.optimize()
    if m.getStatus() == "infeasible":
        return None
    assert m.getStatus() == "optimal", m.getStatus()
    return m.getObjVal()


def main():
    print("case,mw,lambda")
    for line in sys.stdin:
        p = json.loads(line)
        least = written(p)
        if least is None:
            print(f"{p['name']},none,none", flush=True)
            continue
        lam = written(p, least * (1 + 1e-6))
        print(f"{p['name']},{least:.4f},{lam:.5f}", flush=True)


if __name__ == "__main__":
    main()
