//! Threads of a followed reference that are none of the workload's.

use super::experiment;
use crate::follow::{Beside, follow};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::{Platform, Workload};
use risetime_trace::{Backend, Event, Memory, SwitchOut, TraceSink, Why};

/// Both run at the same time, on a CPU each.
#[test]
fn two_threads_of_one_name_are_two() {
    let asleep = r#"{"tasks": {"t": {"delay": 900000, "loop": 1, "run": 10}}}"#;
    let workload = Workload::parse(asleep, "asleep.json").expect("a workload");
    let platform = Platform::load("hikey620").expect("built in");
    let e = experiment(platform, workload, "linux-7.3", &[], Span::from_ms(10));
    let mut simulated = Memory::new();
    crate::Simulator.run(&e, &mut simulated).expect("a run");
    let mut reference = Memory::new();
    TraceSink::header(&mut reference, simulated.header().expect("a header"));
    let namesakes = [(TaskId(7), CpuId(0)), (TaskId(8), CpuId(1))];
    let events = |(task, cpu)| {
        let comm = "init".into();
        let (user, why, max_speed) = (false, Why::Unknown, Util(1024));
        [
            Event::TaskNew { task, comm, user, cpu, why, max_speed },
            Event::Switch { cpu, prev: None, next: Some(task) },
        ]
    };
    let ends = namesakes.map(|(task, cpu)| Event::Switch {
        cpu,
        prev: Some((task, SwitchOut::Sleeping)),
        next: None,
    });
    let all = namesakes.into_iter().flat_map(events).chain(ends);
    for (us, event) in (1..).zip(all) {
        TraceSink::event(&mut reference, Instant(1000 * us), &event);
    }
    TraceSink::end(&mut reference, Instant(1_000_000));
    let followed = follow(&e, &reference, &Beside::default(), None).expect("it is followed");
    assert_eq!((followed.lost.switches, followed.lost.picks), (0, 0));
}
