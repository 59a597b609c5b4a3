//! Noise profiles: what a real machine adds to what the kernel decides.
//!
//! ```text
//! off        nothing (the default): what is decided is seen alone, and a run can be followed by hand
//! vm         what a stock kernel in the virtual machine takes: to be held against one
//! machine    what a kernel takes on a real machine
//! ```
//!
//! A row holds for kernels from its release on, up to the next row of its profile. Of each [`Kind`] it has the
//! middles of eight parts of equal size of what was measured, in ns; one of them is drawn each time
//! ([`crate::state::draw`]). A setting of the kind's name replaces the draws by one time for all.
//!
//! Left out: kworkers and other threads of the kernel; what memory and caches take; that virtual CPUs of one host
//! thread wait for each other (in the virtual machine: up to 0.1 ms where several are busy).

use crate::state::costs::{Eighths, Kind};
use risetime_kernel::KernelRev;
use risetime_model::Policy;
use risetime_model::settings::{Settings, Value};

/// The setting that names a profile.
pub(crate) const NOISE: &str = "noise";
/// The profiles.
pub const NAMES: &[&str] = &["off", "vm", "machine"];

/// A profile under one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    profile: &'static str,
    /// From this release on.
    from: KernelRev,
    /// Of a task that did not ask for another: `init_task.timer_slack_ns`.
    timer_slack_ns: u32,
    timer: Eighths,
    switch: Eighths,
    wakeup: Eighths,
    tick: Eighths,
}

const NOTHING: Eighths = [0; 8];
/// `include/linux/init_task.h`, `init/init_task.c`: 50 µs in every kernel.
const TIMER_SLACK_NS: u32 = 50_000;

/// By profile, then by release.
///
/// `vm`: `cargo run --release -p risetime-lab --example costs RELEASE mainline+timer_slack_ns=0`, which gives eighths of what is
/// late and of what an activation takes beyond its work, each task alone on a CPU of `rpi4` (QEMU 10, shift 1);
/// what is below 0 (the guest's agent credits up to 10 µs to the next piece of work) counts as 0. A tick
/// and a wakeup are within what the agent counts as work, and so take nothing beyond it.
///
/// `machine`: a server's virtual machine with two CPUs (Xeon, 2.5 GHz, KVM, Linux 6.18), beside other work.
/// `timer`: `clock_nanosleep` until an absolute time with a slack of 1 ns, how late it returns, 2000 times (the
/// switch, 1.5 µs, is part of it). `switch`: half a round of a byte through two pipes between two
/// threads on one CPU, 20,000 times. `wakeup`: `FUTEX_WAKE` of a thread that sleeps on the other CPU, as long as the
/// call takes, 3000 times. `tick`: what a thread that reads the clock all the time misses at once, if it is 1
/// to 100 µs: 868 times in 8 s. A machine without a hypervisor is faster in all of that; one is not measured yet.
const ROWS: &[Row] = &[
    // 6.1.0-50-arm64
    Row {
        profile: "vm",
        from: KernelRev::V6_1,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: [0, 0, 0, 0, 0, 0, 0, 336],
        switch: [0, 96, 544, 656, 848, 1_184, 1_472, 2_096],
        wakeup: NOTHING,
        tick: NOTHING,
    },
    // 6.12.107+deb13-arm64
    Row {
        profile: "vm",
        from: KernelRev::V6_12,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: [0, 0, 16, 304, 400, 576, 608, 1_632],
        switch: [0, 240, 800, 976, 1_296, 1_312, 1_424, 2_000],
        wakeup: NOTHING,
        tick: NOTHING,
    },
    // 6.18.15+deb13-arm64
    Row {
        profile: "vm",
        from: KernelRev::new(6, 18),
        timer_slack_ns: TIMER_SLACK_NS,
        timer: [0, 0, 0, 1_520, 1_552, 7_936, 9_872, 9_920],
        switch: [0, 0, 0, 0, 1_696, 1_728, 5_296, 22_064],
        wakeup: NOTHING,
        tick: NOTHING,
    },
    // 7.2.13+deb14-arm64
    Row {
        profile: "vm",
        from: KernelRev::V7_2,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: [0, 0, 0, 160, 256, 7_120, 7_952, 7_952],
        switch: [0, 0, 0, 800, 1_920, 4_064, 4_288, 4_896],
        wakeup: NOTHING,
        tick: NOTHING,
    },
    // 7.3.4+deb13-arm64
    Row {
        profile: "vm",
        from: KernelRev::V7_3,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: [0, 0, 0, 0, 0, 7_248, 8_000, 8_032],
        switch: [0, 0, 0, 1_040, 1_408, 3_920, 4_256, 5_200],
        wakeup: NOTHING,
        tick: NOTHING,
    },
    Row {
        profile: "machine",
        from: KernelRev::V6_1,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: [12_132, 14_179, 15_407, 16_405, 17_742, 19_445, 21_837, 32_085],
        switch: [1_421, 1_439, 1_449, 1_460, 1_473, 1_488, 1_532, 1_959],
        wakeup: [3_350, 3_664, 3_869, 4_047, 4_231, 4_427, 4_692, 5_903],
        tick: [1_611, 2_874, 3_280, 3_584, 3_911, 9_673, 19_687, 26_377],
    },
];

impl Row {
    pub(crate) fn of(&'static self, kind: Kind) -> &'static Eighths {
        match kind {
            Kind::Timer => &self.timer,
            Kind::Switch => &self.switch,
            Kind::Wakeup => &self.wakeup,
            Kind::Tick => &self.tick,
        }
    }
}

/// The row of a profile under a kernel; `None`: nothing is added. Kernels before the first row have that one.
fn of_profile(profile: &str, rev: KernelRev) -> Option<&'static Row> {
    let mut rows = ROWS.iter().filter(|row| row.profile == profile);
    let first = rows.clone().next();
    rows.rfind(|row| row.from <= rev).or(first)
}

pub(crate) fn row(settings: &Settings, rev: KernelRev) -> Option<&'static Row> {
    of_profile(settings.name(NOISE)?, rev)
}

/// The setting that replaces the draws of a kind.
pub(crate) const fn setting(kind: Kind) -> &'static str {
    match kind {
        Kind::Timer => "timer_irq_ns",
        Kind::Switch => "switch_cost_ns",
        Kind::Wakeup => "wakeup_cost_ns",
        Kind::Tick => "tick_cost_ns",
    }
}

/// What a cost is under a policy that does not set it: the slack; of what is drawn, the median. `None`: nothing.
pub(crate) fn default(policy: &Policy, name: &str) -> Option<u64> {
    let Some(Value::Name(profile)) = policy.set.get(NOISE) else { return None };
    let row = of_profile(profile, policy.kernel)?;
    if name == "timer_slack_ns" {
        return Some(row.timer_slack_ns.into());
    }
    let kinds = [Kind::Timer, Kind::Switch, Kind::Wakeup, Kind::Tick];
    let kind = kinds.into_iter().find(|kind| setting(*kind) == name)?;
    Some((u64::from(row.of(kind)[3]) + u64::from(row.of(kind)[4])) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_has_its_rows_in_order_and_each_row_its_eighths() {
        for pair in ROWS.windows(2) {
            assert!(pair[0].profile != pair[1].profile || pair[0].from < pair[1].from, "{pair:?}");
        }
        for row in ROWS {
            assert!(NAMES.contains(&row.profile) && row.profile != "off", "{row:?}");
            let kinds = [row.timer, row.switch, row.wakeup, row.tick];
            assert!(kinds.iter().all(|e| e.is_sorted() && e[7] < 1_000_000), "{row:?}");
        }
        assert!(of_profile("off", KernelRev::NEWEST).is_none());
        for profile in &NAMES[1..] {
            assert!(of_profile(profile, KernelRev::NEWEST).is_some(), "{profile}");
        }
    }

    #[test]
    fn a_setting_replaces_what_the_profile_says() {
        let of = |arg: &str| {
            let policy = Policy::from_arg(arg).expect("a policy");
            default(&policy, "timer_slack_ns")
        };
        assert_eq!((of("linux-7.2"), of("linux-7.2+noise=off")), (None, None));
        assert_eq!(of("linux-7.2+noise=vm"), Some(50_000));
    }
}
