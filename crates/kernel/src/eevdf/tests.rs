//! Behaviour of the runqueue: edge cases by hand, laws by random operation.

use super::*;

fn runqueue(rev: KernelRev) -> CfsRq {
    CfsRq::new(rev, Features::of(rev), Tunables::of(rev, 8, 250))
}

#[test]
fn equals_alternate_by_slices() {
    for rev in [KernelRev::V6_8, KernelRev::V6_12, KernelRev::V7_2] {
        let mut rq = runqueue(rev);
        for id in 0..2 {
            rq.enqueue(
                Entity::new(TaskId(id), LoadWeight::of_nice(0)),
                EnqueueKind::Initial,
            );
        }
        let mut clock = 0;
        let mut ran = [0u64; 2];
        for _ in 0..100 {
            let id = rq.schedule().unwrap();
            loop {
                clock += 1_000_000;
                ran[id.index()] += 1;
                rq.update_clock(clock);
                if rq.tick() {
                    break;
                }
            }
        }
        assert!(ran[0].abs_diff(ran[1]) <= 4, "{rev}: {ran:?}");
    }
}
