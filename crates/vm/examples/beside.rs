//! What a short piece of work takes beside busy CPUs: all virtual CPUs share one stream of instructions, so
//! what a kernel executes on any of them is time that passes on each.
//!
//! ```text
//! beside RELEASE…    boots each (as `risetime vm kernels` lists them) beside 0, 1, 3 and 7 neighbours
//!
//! nap         1 µs of work every 5 ms: what waking up, the agent and falling asleep take
//! slice       100 µs of work every 5 ms
//! neighbours  one on each other CPU: busy for ever, or at 1.7 ms of work every 2.3 ms
//! ```
//!
//! All at the highest frequency, each on a CPU of its own. Told is the running time of an activation in µs,
//! median and ninth decile.

use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_model::{Experiment, Platform, Policy, Workload};
use risetime_trace::{Backend, Event, Header, SwitchOut, TraceSink};
use risetime_vm::Vm;
use risetime_vm::fetch::Cache;
use std::sync::Arc;

fn main() {
    for release in std::env::args().skip(1) {
        for (task, busy) in [("nap", true), ("slice", true), ("slice", false)] {
            let took = [0, 1, 3, 7].map(|n| ask(&release, task, busy, n));
            let neighbours = if busy { "busy" } else { "at work" };
            println!("{release:24} {task:5} beside {neighbours:7} {}", took.join("  "));
        }
    }
}

/// Median and ninth decile.
fn ask(release: &str, task: &str, busy: bool, neighbours: u32) -> String {
    let cache = Cache::from_env().unwrap_or_else(|e| panic!("{e}"));
    let found = Vm::find(&cache, Some(release), risetime_sim::catalogue());
    let (vm, kernel) = found.unwrap_or_else(|e| panic!("{e}"));
    let rev = kernel.rev().expect("a stock kernel says what it is");
    let policy = Policy::from_arg("mainline+governor=performance").expect("built in");
    let policy = Policy { kernel: rev, ..policy };
    let run = if task == "nap" { 1 } else { 100 };
    let mut tasks = format!(
        r#""{task}": {{ "cpus": [7], "loop": -1, "run": {run}, "timer": {{ "ref": "unique", "period": 5003 }} }}"#
    );
    for cpu in 0..neighbours {
        let pause = r#", "timer": { "ref": "unique", "period": 2300 }"#;
        let pause = if busy { "" } else { pause };
        tasks += &format!(r#", "by{cpu}": {{ "cpus": [{cpu}], "loop": -1, "run": 1700{pause} }}"#);
    }
    let workload = format!(r#"{{ "tasks": {{ {tasks} }}, "global": {{ "duration": 1 }} }}"#);
    let workload = Workload::parse(&workload, "beside").unwrap_or_else(|e| panic!("{e}"));
    let platform = eight();
    let e = Experiment {
        settings: risetime_sim::resolve(&platform, &policy).unwrap_or_else(|e| panic!("{e}")),
        platform: Arc::new(platform),
        workload: Arc::new(workload),
        policy,
        duration: Span::from_ms(1000),
        phase: Span(0),
        seed: 1,
    };
    let mut slices = Slices { comm: task.into(), ..Slices::default() };
    vm.run(&e, &mut slices).unwrap_or_else(|e| panic!("{e}"));
    let mut all = slices.all;
    all.sort_unstable();
    let us = |tenths: usize| all.get(all.len() * tenths / 10).map_or(0, |ns| ns / 1000);
    format!("{:5} ({:4})", us(5), us(9))
}

/// Eight CPUs at one frequency.
fn eight() -> Platform {
    let text = r#"
        schema = 1
        name = "eight"
        about = "Eight equal CPUs at one frequency"
        hz = 250
        sources = { capacity = "estimate", opp = "estimate", idle = "estimate", hz = "estimate" }
        [[domain]]
        cpus = "0-7"
        capacity = 1024
        fast_switch = false
        opp = [{ freq_khz = 1000000, power_uw = 500000, latency_ns = 50000 }]
        idle = [{ name = "wfi", exit_latency_us = 1, min_residency_us = 1, power_uw = 5000 }]
    "#;
    Platform::parse(text, "eight").unwrap_or_else(|e| panic!("{e}"))
}

/// Running time of each activation of one task.
#[derive(Default)]
struct Slices {
    comm: String,
    task: Option<TaskId>,
    since: Option<Instant>,
    ran: u64,
    all: Vec<u64>,
}

impl TraceSink for Slices {
    fn header(&mut self, _: &Header) {}

    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::TaskNew { task, comm, user: true, .. } if comm == self.comm => {
                self.task = Some(task)
            }
            Event::Switch { prev, next, .. } => {
                if let Some((task, why)) = prev
                    && Some(task) == self.task
                {
                    self.ran += self.since.take().map_or(0, |since| at.0 - since.0);
                    if why == SwitchOut::Sleeping {
                        self.all.push(std::mem::take(&mut self.ran));
                    }
                }
                if next.is_some() && next == self.task {
                    self.since = Some(at);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, _: Instant) {}
}
