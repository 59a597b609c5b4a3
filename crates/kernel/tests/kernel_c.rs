//! Vectors of our own from the kernel's C, for what tests/golden/ does not reach: how entities join
//! and leave a runqueue's sums, uclamp, the fit of a task, predicted util. See kernel_c/README.md.

use std::path::Path;

use crate::golden::tally::{Tally, u};
use risetime_kernel::KernelRev;
use risetime_kernel::cpu_util::{
    CfsUtil, RqUtil, TaskUtil, capacity_of, cpu_util, get_actual_cpu_capacity,
};
use risetime_kernel::fits::{CpuCapacities, Fit, util_fits_cpu};
use risetime_kernel::pelt::{Decay, SchedAvg, update_load_avg_blocked_se};
use risetime_kernel::pelt_cfs::{
    CfsRqAvg, attach_entity_load_avg, detach_entity_load_avg, init_entity_runnable_average,
    post_init_entity_util_avg, propagate_entity_load_avg, remove_entity_load_avg,
    reweight_entity_load_avg, update_cfs_rq_load_avg,
};
use risetime_kernel::uclamp::{Uclamp, UclampLimits, UclampRq, UclampTask};
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, Util, Weight};
use serde_json::{Value, json};

const DECAY: &Decay = &Decay::MS32;

/// Checks one table of a file.
type Check = fn(KernelRev, &Value, &mut Tally);

fn check(json: &Value) -> Tally {
    let mut tally = Tally::default();
    let rev = match json["kernel"].as_str() {
        Some("6.12.117") => KernelRev::V6_12,
        Some("7.2.12") => KernelRev::V7_2,
        other => panic!("unknown kernel {other:?}"),
    };
    let tables: [(&str, Check); 5] = [
        ("pelt_cfs", check_pelt_cfs),
        ("fits", check_fits),
        ("cpu_util", check_cpu_util),
        ("post_init", check_post_init),
        ("uclamp", check_uclamp),
    ];
    for (name, check) in tables {
        if json.get(name).is_some() {
            check(rev, json, &mut tally);
        }
    }
    tally
}

fn read(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel_c").join(name);
    serde_json::from_slice(&std::fs::read(path).expect(name)).expect(name)
}

#[test]
fn every_row_agrees() {
    for (name, rows) in [
        ("linux-6.12.json", 1000),
        ("linux-7.2.json", 1000),
        ("uclamp-20-buckets-6.12.json", 240),
        ("uclamp-20-buckets-7.2.json", 240),
    ] {
        let tally = check(&read(name));
        assert_eq!(tally.mismatches, 0, "{name}: {:#?}", tally.first);
        assert!(tally.rows >= rows, "{name}: {} rows", tally.rows);
    }
}

/// The vectors tell the kernels apart (6.12 bounds 64-bit sums in 32 bits), and a changed digit
/// from a right one.
#[test]
fn wrong_rows_are_found() {
    for (name, other) in [("linux-6.12.json", "7.2.12"), ("linux-7.2.json", "6.12.117")] {
        let mut json = read(name);
        json["kernel"] = other.into();
        assert!(check(&json).mismatches > 0, "{name} passes as {other}");
    }
    for place in [
        "/pelt_cfs/0/ops/9/0",
        "/fits/3/11",
        "/fits/3/10",
        "/cpu_util/5/12",
        "/post_init/7/4",
        "/uclamp/1/ops/30/0",
    ] {
        let mut json = read("linux-7.2.json");
        let mut value = json.pointer_mut(place).expect(place);
        if value.is_string() {
            // An operation: one digit of the state after it.
            let op = place.strip_suffix("/0").expect("an operation");
            let state =
                json.pointer_mut(op).and_then(Value::as_array_mut).and_then(|op| op.last_mut());
            value = state.and_then(|s| s.get_mut(1)).expect("a state");
            if value.is_array() {
                value = &mut value[2];
            }
        }
        *value = (value.as_i64().expect("a number") + 1).into();
        assert!(check(&json).mismatches > 0, "{place}: not noticed");
    }
}

/// A group's runqueue with three tasks, the group's entity, and the root runqueue it is on.
struct Group {
    rev: KernelRev,
    now: u64,
    root: CfsRqAvg,
    group: CfsRqAvg,
    group_load: Weight,
    ge: SchedAvg,
    ge_weight: Weight,
    tasks: [(SchedAvg, Weight, bool); 3],
}

impl Group {
    fn new(rev: KernelRev, sequence: &Value) -> Option<Group> {
        let start = sequence["start"].as_u64()?;
        let mut at_start = init_entity_runnable_average(None);
        at_start.last_update_time = ClockPelt(start);
        at_start.period_contrib = sequence["period_contrib"].as_u64()? as u32;
        let cfs = CfsRqAvg { avg: at_start, ..CfsRqAvg::default() };
        Some(Group {
            rev,
            now: start,
            root: cfs,
            group: cfs,
            group_load: Weight(0),
            ge: at_start,
            ge_weight: Weight(sequence["ge_weight"].as_u64()?),
            tasks: [(SchedAvg::default(), Weight(0), false); 3],
        })
    }

    /// Performs an operation; the result is what the operation itself says, beside the state.
    fn apply(&mut self, op: &[Value]) -> Option<Vec<u64>> {
        let n = |i: usize| op.get(i).and_then(Value::as_u64);
        let rev = self.rev;
        let task = n(1).and_then(|k| self.tasks.get_mut(k as usize));
        match op.first()?.as_str()? {
            "a" => {
                let (sa, weight, attached) = task?;
                *weight = Weight(n(2)?);
                (sa.util_avg, sa.runnable_avg) = (Util(n(3)?), Util(n(4)?));
                sa.load_avg = n(5)?;
                attach_entity_load_avg(rev, DECAY, &mut self.group, sa, *weight);
                *attached = true;
            }
            "d" => {
                let (sa, weight, attached) = task?;
                update_load_avg_blocked_se(DECAY, self.group.avg.last_update_time, sa, *weight);
                detach_entity_load_avg(rev, DECAY, &mut self.group, sa, *weight);
                *attached = false;
            }
            "r" => {
                let (sa, weight, attached) = task?;
                remove_entity_load_avg(DECAY, &mut self.group, sa, *weight);
                *attached = false;
            }
            "w" => {
                let (sa, weight, _) = task?;
                let new = Weight(n(2)?);
                reweight_entity_load_avg(rev, DECAY, &mut self.group, sa, *weight, new);
                *weight = new;
            }
            "p" => {
                let (group, load) = (&mut self.group, self.group_load);
                let did = propagate_entity_load_avg(
                    rev,
                    DECAY,
                    &mut self.root,
                    &mut self.ge,
                    self.ge_weight,
                    group,
                    load,
                );
                return Some(vec![did as u64]);
            }
            "u" => return self.update(n(1)?, Weight(n(2)?), n(3)?, n(4)? != 0),
            _ => return None,
        }
        Some(Vec::new())
    }

    fn update(&mut self, step: u64, load: Weight, nr: u64, running: bool) -> Option<Vec<u64>> {
        self.now += step;
        self.group_load = load;
        let (rev, now) = (self.rev, ClockPelt(self.now));
        let root_load = if load.0 != 0 { self.ge_weight } else { Weight(0) };
        let group = update_cfs_rq_load_avg(rev, DECAY, now, &mut self.group, load, nr, running);
        let root = update_cfs_rq_load_avg(rev, DECAY, now, &mut self.root, root_load, nr, running);
        update_load_avg_blocked_se(DECAY, now, &mut self.ge, self.ge_weight);
        for (sa, weight, _) in self.tasks.iter_mut().filter(|t| t.2) {
            update_load_avg_blocked_se(DECAY, now, sa, *weight);
        }
        Some(vec![group as u64, root as u64])
    }

    fn state(&self, op: &[Value]) -> Value {
        let avg = |sa: &SchedAvg| {
            json!([
                sa.last_update_time.0,
                sa.load_sum,
                sa.runnable_sum,
                sa.util_sum,
                sa.period_contrib,
                sa.load_avg,
                sa.runnable_avg.0,
                sa.util_avg.0,
            ])
        };
        let (root, group) = (&self.root, &self.group);
        // For operations without a task the file shows one of its own choice: left out.
        let task = op[0] != "u" && op[0] != "p";
        let task = task.then(|| avg(&self.tasks[op[1].as_u64().unwrap_or(0) as usize].0));
        json!([
            avg(&root.avg),
            avg(&group.avg),
            avg(&self.ge),
            task,
            [
                root.propagate as u64,
                root.prop_runnable_sum,
                group.propagate as u64,
                group.prop_runnable_sum
            ],
        ])
    }
}

fn check_pelt_cfs(rev: KernelRev, json: &Value, tally: &mut Tally) {
    for (place, sequence) in tally.groups(json, "pelt_cfs") {
        let mut group = Group::new(rev, sequence).expect("start, period_contrib, ge_weight");
        for (i, op) in sequence["ops"].as_array().into_iter().flatten().enumerate() {
            let (want, op) = op.as_array().and_then(|op| op.split_last()).expect("an operation");
            let says = group.apply(op).unwrap_or_else(|| panic!("{place} {i}: {op:?}"));
            let said: Vec<u64> = match op[0].as_str() {
                Some("p") => op[1..].iter().filter_map(Value::as_u64).collect(),
                Some("u") => op[5..].iter().filter_map(Value::as_u64).collect(),
                _ => Vec::new(),
            };
            let mut want = want.clone();
            if op[0] == "u" || op[0] == "p" {
                want[3] = Value::Null;
            }
            let got = group.state(op);
            tally.row(got == want && says == said, || {
                format!("{place} op {i} {op:?}:\n got {says:?} {got}\nwant {said:?} {want}")
            });
        }
    }
}

fn check_fits(rev: KernelRev, json: &Value, tally: &mut Tally) {
    for (i, row) in tally.rows_of(json, "fits", 12).iter().enumerate() {
        let [util, min, max] = [0, 1, 2].map(|c| Util(u(row[c])));
        let [rt, dl, irq] = [5, 6, 7].map(|c| Util(u(row[c])));
        let (original, hw, pressure) = (Capacity(u(row[4])), u(row[8]), u(row[9]));
        let rq = RqUtil { rt, dl, irq, ..RqUtil::default() };
        let left = capacity_of(rev, original, &rq, hw, pressure);
        let cpu = CpuCapacities {
            capacity_of: left,
            original,
            actual: get_actual_cpu_capacity(original, hw, pressure),
        };
        let fit = match util_fits_cpu(util, min, max, cpu, row[3] != 0) {
            Fit::Fits => 1,
            Fit::DoesNotFit => 0,
            Fit::BoostDoesNotFit => -1,
        };
        // scale_rt_capacity() may answer 0; whoever reads capacity_of() sees 1 then.
        tally.compare(&format!("fits[{i}]"), row, 11, &[fit]);
        tally.row(left.0 as i128 == row[10].max(1), || format!("fits[{i}]: {row:?}: {left}"));
    }
}

fn check_cpu_util(_: KernelRev, json: &Value, tally: &mut Tally) {
    for (i, row) in tally.rows_of(json, "cpu_util", 13).iter().enumerate() {
        let [util_avg, runnable_avg, util_est] = [0, 1, 2].map(|c| Util(u(row[c])));
        let cfs = CfsUtil { util_avg, runnable_avg, util_est };
        let task = TaskUtil {
            cpu: CpuId(u(row[6]) as u32),
            util_avg: Util(u(row[8])),
            runnable_avg: Util(u(row[9])),
            util_est: Util(u(row[10])),
            queued: row[11] != 0,
        };
        let task = (row[5] != 0).then_some(&task);
        let dst = u32::try_from(row[7]).ok().map(CpuId);
        let got = cpu_util(CpuId(0), &cfs, task, dst, row[4] != 0, Capacity(u(row[3])));
        tally.compare(&format!("cpu_util[{i}]"), row, 12, &[got.0 as i128]);
    }
}

fn check_post_init(rev: KernelRev, json: &Value, tally: &mut Tally) {
    for (i, row) in tally.rows_of(json, "post_init", 5).iter().enumerate() {
        let cfs =
            SchedAvg { util_avg: Util(u(row[0])), load_avg: u(row[1]), ..SchedAvg::default() };
        let mut sa = SchedAvg::default();
        post_init_entity_util_avg(rev, &mut sa, Weight(u(row[2])), &cfs, Capacity(u(row[3])));
        tally.compare(&format!("post_init[{i}]"), row, 4, &[sa.util_avg.0 as i128]);
    }
}

fn check_uclamp(_: KernelRev, json: &Value, tally: &mut Tally) {
    let buckets = tally.number("file", json, "uclamp_buckets").expect("uclamp_buckets") as usize;
    let pair = |v: &Value| {
        let n = |i: usize| v[i].as_u64().map(Util).expect("a clamp");
        Uclamp { min: n(0), max: n(1) }
    };
    for (place, sequence) in tally.groups(json, "uclamp") {
        let system = pair(&sequence["system"]);
        let limits =
            [None, Some(pair(&sequence["group"]))].map(|group| UclampLimits { group, system });
        let mut rq = UclampRq::new(buckets);
        let mut tasks = [UclampTask::default(); 4];
        for (i, op) in sequence["ops"].as_array().into_iter().flatten().enumerate() {
            let which = op[1].as_u64().expect("a task") as usize;
            // The first two tasks are in the root group, the others in a group of their own.
            let (task, limits) = (&mut tasks[which], &limits[which / 2]);
            match op[0].as_str() {
                Some("i") => rq.uclamp_rq_inc(task, limits),
                Some("d") => rq.uclamp_rq_dec(task),
                Some("s") => {
                    task.request = pair(&json!([op[2], op[3]]));
                    rq.uclamp_rq_reinc(task, limits);
                }
                other => panic!("{place}: {other:?}"),
            }
            let (of_rq, eff) = (rq.clamps(), task.uclamp_eff_value(limits));
            let idle = rq.uclamp_rq_is_idle() as u64;
            let got = json!([of_rq.min.0, of_rq.max.0, idle, eff.min.0, eff.max.0]);
            let want = op.as_array().and_then(|op| op.last());
            tally.row(want == Some(&got), || format!("{place} op {i} {op}: got {got}"));
        }
    }
}
