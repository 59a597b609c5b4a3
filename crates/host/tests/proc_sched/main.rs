//! The second oracle: our PELT against the running kernel's own sums in `/proc/PID/sched`.
//!
//! A thread pinned to one CPU runs, sleeps and competes in a known way, while another CPU
//! reads its file as fast as it can ([`observe`]). Every update of the thread's signals that
//! the kernel made alone (a tick while it runs, the dequeue, a wait) must be what our
//! arithmetic makes of the state before it, in every sum and average ([`explain`]).
//!
//! The kernel does not print `period_contrib`, but `(last_update_time >> 10) − period_contrib`
//! is constant modulo 1024 as long as a task stays on its CPU: one unknown of 1024 values, for
//! hundreds of updates. Elapsed time is the difference of two `last_update_time`s, so stolen
//! time, interrupts and frequency are accounted for as the kernel accounted for them.
//!
//! On a kernel that does not print what is needed this fails and names it. It needs two CPUs.

mod explain;
mod observe;

use explain::{Model, Report};
use risetime_host::proc_sched::ProcSched;
use risetime_kernel::KernelRev;
use risetime_kernel::pelt::{Decay, update_load_avg, update_load_avg_se, update_load_sum};

/// Two rounds of about two seconds.
const ROUNDS: usize = 2;

#[test]
fn pelt_agrees_with_the_running_kernel() {
    if let Err(e) = ProcSched::of_thread(rustix::thread::gettid().as_raw_nonzero().get() as u32)
        .and_then(|file| file.read())
    {
        panic!("the kernel's own PELT cannot be seen here: {e}");
    }
    let mut total = Report::default();
    let mut rounds = Vec::new();
    while rounds.len() < ROUNDS && !total.enough() {
        let seen = observe::round().unwrap_or_else(|e| panic!("{e}"));
        total.add(explain::explain(&seen, &MAINLINE, running_kernel()));
        rounds.push(seen);
    }
    println!("{total}");
    let disagreements = total.disagreements(running_kernel());
    assert!(disagreements.is_empty(), "our PELT is not this kernel's: {disagreements:?}: {total}");
    assert!(
        total.enough(),
        "too little was seen in {ROUNDS} rounds (is this machine overloaded?): {total}"
    );
    wrong_models_are_noticed(&rounds);
}

const MAINLINE: Model = Model {
    decay: Decay::MS32,
    step: |decay, now, sa, weight, on_rq, runnable, running| {
        update_load_avg_se(decay, now, sa, weight, on_rq, runnable, running)
    },
};

/// These observations under models that are slightly wrong: had ours been one of them, the test would
/// have failed.
fn wrong_models_are_noticed(rounds: &[Vec<observe::Seen>]) {
    let faster = Decay::new(31).unwrap();
    let slower = Decay::new(33).unwrap();
    let wrong: [(&str, Model); 5] = [
        ("half-life of 31 periods", Model { decay: faster, ..MAINLINE }),
        ("half-life of 33 periods", Model { decay: slower, ..MAINLINE }),
        (
            "averages refreshed at every update",
            Model {
                step: |decay, now, sa, weight, on_rq, runnable, running| {
                    update_load_sum(decay, now, sa, on_rq.into(), runnable, running);
                    update_load_avg(decay, sa, weight.0);
                    true
                },
                ..MAINLINE
            },
        ),
        (
            "a unit of time too much",
            Model {
                step: |decay, now, sa, weight, on_rq, runnable, running| {
                    let later = risetime_kernel::units::ClockPelt(now.0 + 1024);
                    let crossed =
                        update_load_avg_se(decay, later, sa, weight, on_rq, runnable, running);
                    sa.last_update_time = now;
                    crossed
                },
                ..MAINLINE
            },
        ),
        (
            "sums one too large after each period",
            Model {
                step: |decay, now, sa, weight, on_rq, runnable, running| {
                    let crossed =
                        update_load_avg_se(decay, now, sa, weight, on_rq, runnable, running);
                    sa.load_sum += u64::from(crossed);
                    crossed
                },
                ..MAINLINE
            },
        ),
    ];
    for (name, model) in wrong {
        let mut report = Report::default();
        for seen in rounds {
            report.add(explain::explain(seen, &model, running_kernel()));
        }
        assert!(
            !report.disagreements(running_kernel()).is_empty(),
            "{name} went unnoticed: {report}"
        );
    }
}

fn running_kernel() -> KernelRev {
    let machine = risetime_host::Machine::probe(&risetime_host::Root::new("/"));
    machine.kernel_version().expect("/proc/sys/kernel/osrelease")
}
