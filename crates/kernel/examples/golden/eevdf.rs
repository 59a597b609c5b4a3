//! eevdf.json: scenarios of operations on one runqueue, with its whole state after each.
//!
//! A row is one operation; it mismatches if any number of the state differs. After a row that
//! went wrong the scenario goes on, so that every row counts.
//!
//! What the file's description leaves open, and how it is met here:
//! - V is given as 0 when nothing is queued.
//! - 7.2 was compiled without `CONFIG_64BIT`: its virtual times come from inverse weights, where
//!   a 64-bit kernel divides. A scenario with `"config_64bit": 1` (ours) divides.
//! - Which inverse weight a renice leaves behind: the nice table's, as `reweight_task_fair` sets
//!   it, or the floor that `reweight_entity` alone computes. The table's is taken; if that does
//!   not fit, the whole file is replayed with the other, and the better fit counts.
//!
//! Beyond the operations described in tests/golden/README.md: `["W",id,fork]` wakeup preemption
//! by the queued id, `["y"]` yield of the current task, `["m",id]` id leaves for another CPU
//! (its next `w` brings it back from there); and switches of a scenario, on where absent:
//! `run_to_parity`, `delay_zero`, `place_lag`, `preempt_short`.

use std::collections::BTreeMap;

use risetime_kernel::KernelRev;
use risetime_kernel::eevdf::{
    CfsRq, DequeueKind, Dequeued, EnqueueKind, Entity, EntityId, Features, Tunables,
};
use risetime_kernel::units::TaskId;
use risetime_kernel::weight::LoadWeight;
use serde_json::Value;

use super::tally::Tally;

/// Replays every scenario of eevdf.json.
pub fn check(json: &Value) -> Tally {
    let table = replay_all(json, Inverse::Table);
    if table.mismatches == 0 {
        return table;
    }
    let floor = replay_all(json, Inverse::Floor);
    if floor.mismatches < table.mismatches { floor } else { table }
}

/// Which inverse weight a renice leaves behind.
#[derive(Clone, Copy)]
enum Inverse {
    Table,
    Floor,
}

impl Inverse {
    fn of_nice(self, nice: i64) -> LoadWeight {
        let load = LoadWeight::of_nice(nice as i32);
        match self {
            Inverse::Table => load,
            Inverse::Floor => LoadWeight::of_scaled(load.weight().0 << 10),
        }
    }
}

fn replay_all(json: &Value, inverse: Inverse) -> Tally {
    let mut tally = Tally::default();
    let Some(scenarios) = json["scenarios"].as_array() else {
        tally.row(false, || "no `scenarios`".into());
        return tally;
    };
    for (number, scenario) in scenarios.iter().enumerate() {
        let Some(mut replay) = Replay::new(scenario, inverse) else {
            tally.row(false, || format!("scenario {number}: unknown version or missing figures"));
            continue;
        };
        for (row, op) in scenario["ops"].as_array().into_iter().flatten().enumerate() {
            let Some((want, op)) = op.as_array().and_then(|op| op.split_last()) else {
                tally.row(false, || format!("scenario {number} row {row}: not an operation"));
                continue;
            };
            let got = replay.apply(op).map(|()| replay.state());
            tally.row(got.as_ref() == Some(want), || match &got {
                Some(got) => format!("scenario {number} row {row} {op:?}: {got}, wanted {want}"),
                None => format!("scenario {number} row {row}: unknown operation {op:?}"),
            });
        }
    }
    tally
}

/// One scenario under way.
struct Replay {
    rev: KernelRev,
    rq: CfsRq,
    inverse: Inverse,
    clock: u64,
    /// What the scenario has as the current task: it stays so after falling asleep, until the
    /// next schedule().
    shown_curr: Option<EntityId>,
    /// The tasks that are not queued, and how they will come back.
    asleep: BTreeMap<EntityId, (Entity, EnqueueKind)>,
}

impl Replay {
    fn new(scenario: &Value, inverse: Inverse) -> Option<Replay> {
        let rev = match scenario["version"].as_str()? {
            "6.12" => KernelRev::V6_12,
            "7.2" => KernelRev::V7_2,
            _ => return None,
        };
        let switch = |name: &str, absent| scenario[name].as_i64().map_or(absent, |on| on != 0);
        let features = Features {
            delay_dequeue: scenario["delay_dequeue"].as_i64()? != 0,
            run_to_parity: switch("run_to_parity", true),
            delay_zero: switch("delay_zero", true),
            place_lag: switch("place_lag", true),
            preempt_short: switch("preempt_short", true),
            inverse_weights: rev < KernelRev::V7_2 || !switch("config_64bit", false),
            ..Features::of(rev)
        };
        let tunables = Tunables {
            base_slice_ns: scenario["base_slice_ns"].as_u64()?,
            normalized_base_slice_ns: 700_000,
            tick_ns: scenario["tick_ns"].as_u64()?,
        };
        Some(Replay {
            rev,
            rq: CfsRq::new(rev, features, tunables),
            inverse,
            clock: 0,
            shown_curr: None,
            asleep: BTreeMap::new(),
        })
    }

    /// Performs `op`; `None` if it makes no sense.
    fn apply(&mut self, op: &[Value]) -> Option<()> {
        let number = |i: usize| op.get(i)?.as_i64();
        let task = || Some(EntityId::of_task(TaskId(u32::try_from(number(1)?).ok()?)));
        match op.first()?.as_str()? {
            "a" => {
                let id = task()?;
                let mut entity = Entity::new(id, LoadWeight::of_nice(number(2)? as i32));
                entity.slice = op.get(3)?.as_u64()?;
                entity.custom_slice = entity.slice != 0;
                let known = self.rq.get(id).is_some() || self.asleep.contains_key(&id);
                (!known).then(|| self.rq.enqueue(entity, EnqueueKind::Initial))?;
            }
            "w" => self.wake(task()?)?,
            "r" => {
                self.clock = self.clock.wrapping_add(op.get(1)?.as_u64()?);
                self.rq.update_clock(self.clock);
                self.rq.update_curr();
            }
            "s" => self.dequeue(task()?, DequeueKind::Sleep)?,
            "m" => self.dequeue(task()?, DequeueKind::Migrate)?,
            "n" => {
                let (id, load) = (task()?, self.inverse.of_nice(number(2)?));
                match self.asleep.get_mut(&id) {
                    Some((entity, _)) => entity.reweight(self.rev, load),
                    None => self.rq.reweight(id, load).then_some(())?,
                }
            }
            "p" => self.shown_curr = self.rq.schedule(),
            "W" => {
                self.rq.wakeup_preempt(task()?, number(2)? != 0);
            }
            "y" => self.rq.yield_task(),
            _ => return None,
        }
        for entity in self.rq.take_departed() {
            self.asleep.insert(entity.id, (entity, EnqueueKind::Wakeup));
        }
        Some(())
    }

    fn wake(&mut self, id: EntityId) -> Option<()> {
        match self.asleep.remove(&id) {
            Some((entity, how)) => {
                self.rq.enqueue(entity, how);
                Some(())
            }
            None => self.rq.requeue_delayed(id).then_some(()),
        }
    }

    fn dequeue(&mut self, id: EntityId, kind: DequeueKind) -> Option<()> {
        let back = match kind {
            DequeueKind::Migrate => EnqueueKind::Migrated,
            _ => EnqueueKind::Wakeup,
        };
        match self.rq.dequeue(id, kind) {
            Dequeued::Yes(entity) => {
                self.asleep.insert(id, (entity, back));
            }
            Dequeued::Delayed => {}
            Dequeued::Absent => return None,
        }
        Some(())
    }

    /// The state in the file's columns.
    fn state(&self) -> Value {
        let rq = &self.rq;
        let mut entities: Vec<(EntityId, Value)> = rq
            .iter()
            .map(|e| {
                let curr = rq.curr().is_some_and(|curr| curr.id == e.id);
                let row = serde_json::json!([
                    task_number(e.id),
                    1 + i64::from(e.sched_delayed),
                    e.vruntime as i64,
                    e.deadline as i64,
                    rq.entity_lag(e.id),
                    i64::from(rq.entity_eligible(e.id)),
                    i64::from(curr && rq.curr_protected()),
                ]);
                (e.id, row)
            })
            .chain(self.asleep.values().map(|(e, _)| {
                (e.id, serde_json::json!([task_number(e.id), 0, 0, 0, e.vlag, 0, 0]))
            }))
            .collect();
        entities.sort_by_key(|&(id, _)| id);
        let entities: Vec<Value> = entities.into_iter().map(|(_, row)| row).collect();
        serde_json::json!([
            self.shown_curr.map_or(-1, |id| i64::from(task_number(id))),
            i64::from(rq.need_resched()),
            if rq.nr_queued() == 0 { 0 } else { rq.avg_vruntime() as i64 },
            rq.nr_queued(),
            entities,
        ])
    }
}

/// The vectors know tasks only.
fn task_number(id: EntityId) -> u32 {
    id.as_task().map_or(u32::MAX, |task| task.0)
}
