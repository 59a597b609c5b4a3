//! What a simulator that follows a reference makes of threads that are none of the workload's.

use super::experiment;
use super::sampling::one_cpu;
use crate::follow::{Beside, follow};
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::workload::Workload;
use risetime_trace::{Backend, Event, Memory, TraceSink, Why};

const CPU: CpuId = CpuId(0);

/// One runs as a real-time thread and becomes an ordinary one; its namesake, which sleeps, stays what it is.
#[test]
fn two_threads_of_one_name_are_two() {
    let idle = r#"{"tasks": {"t": {"delay": 900000, "loop": 1, "run": 10}}}"#;
    let workload = Workload::parse(idle, "idle.json").expect("a workload");
    let e = experiment(one_cpu(), workload, "linux-7.3", &[], Span::from_ms(10));
    let mut simulated = Memory::new();
    crate::Simulator.run(&e, &mut simulated).expect("a run");
    let mut reference = Memory::new();
    TraceSink::header(&mut reference, simulated.header().expect("a header"));
    let [first, second] = [TaskId(7), TaskId(8)];
    let new = |task| Event::TaskNew {
        task,
        comm: "init".into(),
        user: false,
        cpu: CPU,
        why: Why::Unknown,
        max_speed: Util(1024),
    };
    let prio = |task, prio| Event::Prio { task, prio };
    let events = [
        new(first),
        prio(first, 120),
        Event::Switch { cpu: CPU, prev: None, next: Some(first) },
        new(second),
        prio(second, 0),
        prio(first, 0),
        prio(first, 120),
    ];
    for (us, event) in events.iter().enumerate() {
        TraceSink::event(&mut reference, Instant(1000 * (us as u64 + 1)), event);
    }
    TraceSink::end(&mut reference, Instant(1_000_000));
    follow(&e, &reference, &Beside::default(), None).expect("it is followed");
}
