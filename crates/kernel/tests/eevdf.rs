//! The fair runqueue: vectors of operations that the golden sample has not, and the laws that
//! hold in every generation, under random operations.
//!
//! eevdf/operations.json holds numbers only, printed by kernel/sched/fair.c of Linux 6.12.117
//! and 7.2.12, compiled unmodified in userspace for 64 bits and driven at random: renice,
//! delayed dequeue, wakeup preemption, yield and migration, with the switches of features.h on
//! and off. Columns and operations: examples/golden/eevdf.rs.

#![allow(clippy::disallowed_methods, unreachable_pub)]

// The library of vectors' checks is shared with the harness, which uses all of it.
#[allow(dead_code)]
#[path = "../examples/golden/tally.rs"]
mod tally;
#[path = "../examples/golden/eevdf.rs"]
mod vectors;

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use risetime_kernel::KernelRev;
use risetime_kernel::eevdf::{
    CfsRq, DequeueKind, Dequeued, EnqueueKind, Entity, EntityId, Features, Tunables,
};
use risetime_kernel::units::TaskId;
use risetime_kernel::weight::LoadWeight;
use tally::Tally;

const REVS: [KernelRev; 3] = [KernelRev::V6_8, KernelRev::V6_12, KernelRev::V7_2];
const TICK_NS: u64 = 1_000_000;

#[test]
fn operations_agree_with_the_kernels_own_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/eevdf/operations.json");
    let text = std::fs::read(file).expect("operations.json");
    let tally = vectors::check(&serde_json::from_slice(&text).expect("JSON"));
    assert_eq!(tally.rows, 22 * 55);
    assert_eq!(tally.mismatches, 0, "{:#?}", tally.first);
}

fn runqueue(rev: KernelRev) -> CfsRq {
    CfsRq::new(rev, Features::of(rev), Tunables::of(rev, 4, 1000))
}

/// V − v of `entity`, exactly.
fn lag(rq: &CfsRq, entity: &Entity) -> i128 {
    i128::from(rq.avg_vruntime().wrapping_sub(entity.vruntime) as i64)
}

/// Σ w_j (v_j − v) ≥ 0: eligible by the definition, without a reference point or a division.
fn eligible(rq: &CfsRq, vruntime: u64) -> bool {
    let ahead = |e: &Entity| i128::from(e.vruntime.wrapping_sub(vruntime) as i64);
    rq.iter().map(|e| i128::from(e.weight().0) * ahead(e)).sum::<i128>() >= 0
}

/// A task that runs now and then, told to do one thing.
#[derive(Clone, Copy, Debug)]
enum Op {
    New { nice: i32, slice_us: u64 },
    Run { us: u64 },
    Sleep,
    Wake { who: usize },
    Renice { who: usize, nice: i32 },
    Move { who: usize },
    Yield,
    Schedule,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let who = 0..12usize;
    let op = prop_oneof![
        2 => (-20..20i32, prop_oneof![Just(0u64), 100..20_000u64])
            .prop_map(|(nice, slice_us)| Op::New { nice, slice_us }),
        6 => (0..5000u64).prop_map(|us| Op::Run { us }),
        2 => Just(Op::Sleep),
        3 => who.clone().prop_map(|who| Op::Wake { who }),
        1 => (who.clone(), -20..20i32).prop_map(|(who, nice)| Op::Renice { who, nice }),
        1 => who.prop_map(|who| Op::Move { who }),
        1 => Just(Op::Yield),
        6 => Just(Op::Schedule),
    ];
    proptest::collection::vec(op, 1..80)
}

/// A runqueue under random operations, with what must be true of it kept beside.
struct World {
    rq: CfsRq,
    clock: u64,
    away: BTreeMap<EntityId, (Entity, EnqueueKind)>,
    born: u32,
    ran: u64,
    idle: u64,
}

impl World {
    fn new(rev: KernelRev) -> World {
        let (away, clock) = (BTreeMap::new(), 0);
        World { rq: runqueue(rev), clock, away, born: 0, ran: 0, idle: 0 }
    }

    fn act(&mut self, op: Op) {
        let rq = &mut self.rq;
        match op {
            Op::New { nice, slice_us } => {
                let mut entity = Entity::new(TaskId(self.born), LoadWeight::of_nice(nice));
                entity.request_slice(Some(slice_us * 1000).filter(|&ns| ns != 0));
                self.born += 1;
                rq.enqueue(entity, EnqueueKind::Initial);
                rq.wakeup_preempt(entity.id, true);
            }
            Op::Run { us } => {
                self.clock += us * 1000;
                let busy = rq.curr().is_some();
                *(if busy { &mut self.ran } else { &mut self.idle }) += us * 1000;
                rq.update_clock(self.clock);
                rq.tick();
            }
            Op::Sleep => {
                let Some(id) = rq.curr().filter(|e| !e.sched_delayed).map(|e| e.id) else {
                    return;
                };
                if let Dequeued::Yes(entity) = rq.dequeue(id, DequeueKind::Sleep) {
                    self.away.insert(id, (entity, EnqueueKind::Wakeup));
                }
                rq.schedule();
            }
            Op::Wake { who } => {
                let id = EntityId::of_task(TaskId(who as u32));
                match self.away.remove(&id) {
                    Some((entity, kind)) => rq.enqueue(entity, kind),
                    None if rq.requeue_delayed(id) => {}
                    None => return,
                }
                rq.wakeup_preempt(id, false);
            }
            Op::Renice { who, nice } => {
                rq.renice(TaskId(who as u32), LoadWeight::of_nice(nice));
            }
            Op::Move { who } => {
                let id = EntityId::of_task(TaskId(who as u32));
                if rq.curr().is_some_and(|e| e.id == id) {
                    return;
                }
                if let Dequeued::Yes(entity) = rq.dequeue(id, DequeueKind::Migrate) {
                    self.away.insert(id, (entity, EnqueueKind::Migrated));
                }
            }
            Op::Yield => rq.yield_task(),
            Op::Schedule => {
                let want = if rq.iter().any(|e| e.sched_delayed) { None } else { expected(rq) };
                let got = rq.schedule();
                if let Some(want) = want {
                    assert_eq!(got.map(|id| rq.get(id).unwrap().deadline), Some(want.deadline));
                }
            }
        }
        for entity in self.rq.take_departed() {
            self.away.insert(entity.id, (entity, EnqueueKind::Wakeup));
        }
    }

    fn check(&self) {
        let rq = &self.rq;
        let queued = rq.iter().count();
        assert_eq!(queued, rq.nr_queued());
        assert_eq!(rq.iter().map(|e| e.weight().0).sum::<u64>(), rq.load_weight().0);
        assert_eq!(queued - rq.iter().filter(|e| e.sched_delayed).count(), rq.nr_runnable());
        assert_eq!(queued + self.away.len(), self.born as usize, "no task is lost or doubled");
        let served: u64 =
            rq.iter().chain(self.away.values().map(|(e, _)| e)).map(|e| e.sum_exec_runtime).sum();
        assert_eq!(served, self.ran, "the CPU's time is the tasks' time");

        // V is the weighted mean, rounded down by less than one.
        let (sum, weight) = rq.iter().fold((0, 0), |(sum, weight), e| {
            let w = i128::from(e.weight().0);
            (sum + w * lag(rq, e), weight + w)
        });
        assert!(queued == 0 || (-weight < sum && sum <= 0), "sum of lags {sum} of {weight}");
        assert!(queued == 0 || rq.iter().any(|e| rq.entity_eligible(e.id)));
        for e in rq.iter() {
            assert_eq!(rq.entity_eligible(e.id), eligible(rq, e.vruntime), "{e:?}");
        }
    }
}

/// What schedule() must pick, by looking at everyone.
fn expected(rq: &CfsRq) -> Option<Entity> {
    let mut rq = rq.clone();
    rq.update_curr();
    let curr = rq.curr().copied().filter(|e| eligible(&rq, e.vruntime));
    if let Some(curr) = curr.filter(|_| rq.curr_protected()) {
        return Some(curr);
    }
    let origin = rq.avg_vruntime();
    rq.iter()
        .filter(|e| eligible(&rq, e.vruntime))
        .min_by_key(|e| e.deadline.wrapping_sub(origin) as i64)
        .copied()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_under_any_operations(ops in ops(), rev in 0..3usize) {
        let mut world = World::new(REVS[rev]);
        for op in ops {
            world.act(op);
            world.check();
        }
    }

    /// Tasks that never sleep get time by weight, to a slice of whole
    /// ticks and a tick (if slices are no shorter than ticks, the theory's premise); V never goes back.
    #[test]
    fn shares_follow_weights(
        nices in proptest::collection::vec(-10..10i32, 2..8),
        slice_us in prop_oneof![Just(0u64), 1000..10_000u64],
        rev in 0..3usize,
    ) {
        let mut rq = runqueue(REVS[rev]);
        for (id, &nice) in nices.iter().enumerate() {
            let mut entity = Entity::new(TaskId(id as u32), LoadWeight::of_nice(nice));
            entity.request_slice(Some(slice_us * 1000).filter(|&ns| ns != 0));
            rq.enqueue(entity, EnqueueKind::Initial);
        }
        let total: u64 = rq.iter().map(|e| e.weight().0).sum();
        let slice = rq.iter().map(|e| e.slice).max().unwrap();
        let mut v = rq.avg_vruntime();
        rq.schedule();
        for tick in 1..400u64 {
            rq.update_clock(tick * TICK_NS);
            if rq.tick() {
                rq.schedule();
            }
            prop_assert!(rq.avg_vruntime().wrapping_sub(v) as i64 >= 0, "V went back");
            v = rq.avg_vruntime();
            for e in rq.iter() {
                let fair = tick * TICK_NS * e.weight().0 / total;
                let off = fair.abs_diff(e.sum_exec_runtime);
                // The inverse weights of old kernels are good to about 1 in 30,000.
                let tolerance = slice.next_multiple_of(TICK_NS) + TICK_NS + fair / 10_000;
                prop_assert!(off <= tolerance, "{e:?} after {tick} ticks: {off} off {fair}");
            }
        }
    }

    /// A lag survives sleep, and a sleeper cannot gain by sleeping.
    #[test]
    fn lag_survives_leaving_and_coming_back(
        nices in proptest::collection::vec(-10..10i32, 3..6),
        ms in proptest::collection::vec(1..6u64, 1..12),
        rev in 0..3usize,
    ) {
        let mut rq = runqueue(REVS[rev]);
        for (id, &nice) in nices.iter().enumerate() {
            rq.enqueue(Entity::new(TaskId(id as u32), LoadWeight::of_nice(nice)), EnqueueKind::Initial);
        }
        let mut clock = 0;
        rq.schedule();
        for ms in ms {
            clock += ms * 1_000_000;
            rq.update_clock(clock);
            rq.tick();
            rq.schedule();
        }
        let id = rq.iter().find(|e| Some(e.id) != rq.curr().map(|c| c.id)).unwrap().id;
        let before = rq.entity_lag(id).unwrap();
        let Dequeued::Yes(entity) = rq.dequeue(id, DequeueKind::SleepSpecial) else {
            panic!("not queued");
        };
        prop_assert_eq!(entity.vlag, before);
        rq.enqueue(entity, EnqueueKind::Wakeup);
        let after = lag(&rq, rq.get(id).unwrap());
        prop_assert!((after - i128::from(before)).abs() <= 2, "{before} became {after}");
    }
}
