//! Noise profiles: what a real machine adds to what the kernel decides.
//!
//! ```text
//! off        nothing, as where no profile is named: what is decided is seen alone, and a run can be followed by hand
//! vm         what a stock kernel in the virtual machine takes: to be held against one
//! machine    what a kernel takes on a real machine
//! ```
//!
//! A row holds for kernels from its release on, up to the next row of its profile. Of each [`Kind`] it has the
//! middles of eight parts of equal size of what was measured, in ns; one of them is drawn each time
//! ([`crate::state::draw`]). A setting of the kind's name replaces the draws by one time for all.
//!
//! Left out: kworkers and other threads of the kernel; what memory and caches take; that a virtual CPU stands still while
//! others have their turn, but at a wakeup.

use crate::state::costs::{Amount, ByBusy, Eighths, Kind, PARTS, quantile};
use risetime_kernel::KernelRev;
use risetime_kernel::units::Span;
use risetime_model::Policy;
use risetime_model::settings::{Default, Home, Name, Neutral, Param, Range, Settings, Value, keys};

/// The setting that names a profile.
pub const NOISE: Name = Name::new(Param {
    name: keys::NOISE.name(),
    doc: "the profile of what a real machine adds, by the seed: timer slack, late timers, what switches, wakeups and ticks take (vm: as measured in the virtual machine, machine: as measured on a real one; unset: off, nothing)",
    unit: "",
    range: Range::OneOf(NAMES),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Any),
});
/// The profiles.
pub const NAMES: &[&str] = &["off", "vm", "machine"];

/// A profile under one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    profile: &'static str,
    /// First release that the row is for.
    from: KernelRev,
    /// Timer slack of a task that did not ask for another: `init_task.timer_slack_ns`.
    timer_slack_ns: u32,
    timer: Amount,
    switch: Eighths,
    wakeup: Eighths,
    tick: Eighths,
    irq: Eighths,
    call: Eighths,
    again: Eighths,
    resched: &'static ByBusy,
    remote: &'static ByBusy,
}

const NOTHING: Eighths = [0; 8];
const AT_ONCE: ByBusy = [[0; PARTS.len()]; 4];
/// `include/linux/init_task.h`, `init/init_task.c`: 50 µs in every kernel.
const TIMER_SLACK_NS: u32 = 50_000;

/// Delays of timers under 7.3.4, which 7.2 is taken to have as well.
const LATE_ON_7_3: ByBusy = [
    [192, 736, 800, 2_480, 2_480, 2_512, 15_280, 41_984, 51_904],
    [624, 2_256, 2_480, 15_024, 33_040, 37_920, 48_176, 66_752, 82_240],
    [624, 2_480, 13_904, 33_088, 64_640, 75_472, 86_176, 96_608, 113_872],
    [624, 8_496, 21_776, 49_760, 74_912, 81_120, 94_080, 112_992, 114_960],
];

/// Delays of a CPU's look after another one has woken a task for it, under 7.3.4, which 7.2 is
/// taken to have as well.
const REMOTE_ON_7_3: ByBusy = [
    [41_840; 9],
    [28_416, 37_008, 58_464, 73_008, 93_456, 128_928, 138_288, 148_080, 148_080],
    [29_552, 70_496, 95_936, 140_240, 171_872, 182_512, 235_296, 250_720, 250_720],
    [30_400, 77_584, 121_392, 160_560, 204_992, 228_704, 302_368, 412_384, 412_384],
];

/// Times of calls under 7.3.4, which 6.18 and 7.2 are taken to have as well.
const CALL_ON_7_3: Eighths = [11_100, 12_400, 12_500, 12_600, 12_700, 12_800, 12_900, 13_200];
const AGAIN_ON_7_3: Eighths = [15_000, 15_100, 15_100, 15_100, 15_200, 24_100, 28_800, 40_000];

/// Rows by profile, then by release.
///
/// `vm`: `cargo run --release -p risetime-lab --example costs RELEASE mainline+timer_slack_ns=0`, which gives eighths of what is
/// late and of what an activation takes beyond its work, each task alone on a CPU of `rpi4` (QEMU 10, shift 1);
/// what is below 0 (the guest's agent credits up to 10 µs to the next piece of work) counts as 0. A tick
/// and a wakeup are within what the agent counts as work, and so take nothing beyond it. `resched`: … `--example
/// costs waits DIR RELEASE`, over what `verify --mode spread --draw 12 --seed 400 --phases 3 --references DIR` kept, by
/// how many other CPUs are busy: the virtual CPUs share one thread of the host, and take turns. `remote`: the same command, of
/// tasks that their wakeup takes to an idle CPU, 118 to 172 for each number of busy CPUs, but 1 to 7 where none is; of a busy CPU
/// it is taken to be the same (of four tasks on a `chromebook4` in turn its median was 64 µs, that of idle ones 39 to 78). `timer`
/// by busy CPUs, for the same reason: … `--example costs late RELEASE`, from a timer's expiry to its task's wakeup.
///
/// `irq`: from the tick to the wakeup of `ondemand`'s or `conservative`'s worker where no other CPU was woken between, in
/// runs of `periodic` and of `crates/lab/tests/governors` on `rpi4`; a tick that reschedules does so 2 µs before.
///
/// `again`: in `wide-501-5` on `odroid-xu4` (`verify --mode spread`), of a task that is woken while the mutex it wants is
/// held, from having the CPU to being asleep again; `call`: of its waker, from having the CPU again to the wakeup by its
/// unlock (of 6.1, where it is hardly ever switched off in between, from there to its sleep).
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
        timer: Amount::ByBusy(&[
            [864, 960, 976, 1_040, 1_040, 1_104, 8_688, 17_680, 24_784],
            [864, 976, 1_040, 10_576, 22_960, 33_648, 44_208, 54_736, 65_792],
            [640, 1_040, 13_008, 29_024, 51_840, 71_392, 78_224, 91_824, 110_448],
            [448, 9_120, 22_128, 37_168, 67_808, 77_744, 95_952, 104_800, 112_384],
        ]),
        switch: [0, 96, 544, 656, 848, 1_184, 1_472, 2_096],
        wakeup: NOTHING,
        tick: NOTHING,
        // Of 6.12: there is nothing in a trace of 6.1 by which to tell when its tick began.
        irq: [4_776, 11_600, 11_808, 11_984, 12_048, 12_112, 12_224, 12_696],
        call: [11_700, 11_700, 11_700, 11_700, 11_900, 11_900, 11_900, 11_900],
        again: [18_200, 18_300, 18_400, 18_500, 18_500, 18_500, 18_700, 18_900],
        resched: &[
            [3_952, 5_952, 7_024, 7_600, 8_960, 10_448, 29_904, 55_904, 73_168],
            [3_808, 5_904, 6_624, 7_520, 13_792, 26_512, 43_328, 101_680, 172_240],
            [4_032, 6_032, 6_640, 7_520, 20_896, 49_616, 84_688, 117_232, 187_616],
            [3_888, 6_016, 6_608, 7_520, 37_104, 99_824, 130_432, 178_240, 244_672],
        ],
        remote: &[
            [23_584; 9],
            [15_344, 16_800, 33_568, 40_384, 66_304, 86_640, 100_816, 123_664, 123_664],
            [15_840, 33_936, 51_760, 74_384, 122_112, 127_616, 131_584, 170_096, 170_096],
            [9_200, 48_928, 86_064, 119_904, 145_648, 170_176, 206_768, 261_152, 261_152],
        ],
    },
    // 6.12.117+deb13-arm64; what is drawn alone: 6.12.107
    Row {
        profile: "vm",
        from: KernelRev::V6_12,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: Amount::ByBusy(&[
            [592, 688, 720, 2_176, 2_176, 2_208, 2_512, 20_720, 47_104],
            [592, 2_096, 2_176, 11_232, 24_160, 32_528, 38_928, 53_024, 86_672],
            [592, 2_176, 13_200, 28_688, 49_168, 70_896, 75_872, 85_664, 89_072],
            [592, 9_488, 20_720, 37_520, 71_552, 79_712, 91_616, 94_528, 100_064],
        ]),
        switch: [0, 240, 800, 976, 1_296, 1_312, 1_424, 2_000],
        wakeup: NOTHING,
        tick: NOTHING,
        irq: [4_776, 11_600, 11_808, 11_984, 12_048, 12_112, 12_224, 12_696],
        call: [8_500, 8_600, 8_700, 8_700, 8_900, 8_900, 9_800, 10_000],
        again: [9_400, 9_400, 9_400, 9_600, 10_000, 17_900, 18_300, 19_900],
        resched: &[
            [3_728, 4_896, 6_592, 7_568, 9_696, 10_144, 44_608, 51_248, 107_360],
            [3_728, 5_744, 6_480, 7_184, 11_808, 21_360, 44_032, 77_168, 95_936],
            [3_840, 6_000, 6_576, 7_280, 17_056, 38_640, 78_176, 107_312, 142_272],
            [3_776, 6_000, 6_560, 7_280, 36_496, 111_072, 137_536, 189_392, 234_800],
        ],
        remote: &[
            [19_488, 22_144, 22_304, 22_720, 23_008, 23_008, 23_008, 23_008, 23_008],
            [12_480, 16_672, 31_840, 37_632, 52_896, 84_608, 95_600, 95_616, 95_616],
            [15_328, 35_168, 52_656, 75_072, 95_824, 107_056, 124_192, 125_984, 125_984],
            [10_304, 49_792, 77_984, 113_648, 145_456, 166_400, 183_616, 214_048, 214_048],
        ],
    },
    // 6.18.15+deb13-arm64
    Row {
        profile: "vm",
        from: KernelRev::new(6, 18),
        timer_slack_ns: TIMER_SLACK_NS,
        timer: Amount::Drawn(&[0, 0, 0, 1_520, 1_552, 7_936, 9_872, 9_920]),
        switch: [0, 0, 0, 0, 1_696, 1_728, 5_296, 22_064],
        wakeup: NOTHING,
        tick: NOTHING,
        irq: NOTHING,
        call: CALL_ON_7_3,
        again: AGAIN_ON_7_3,
        resched: &AT_ONCE,
        remote: &AT_ONCE,
    },
    // 7.2.13+deb14-arm64
    Row {
        profile: "vm",
        from: KernelRev::V7_2,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: Amount::ByBusy(&LATE_ON_7_3),
        switch: [0, 0, 0, 800, 1_920, 4_064, 4_288, 4_896],
        wakeup: NOTHING,
        tick: NOTHING,
        irq: [28_688, 28_704, 28_704, 28_704, 28_768, 28_848, 29_232, 29_776],
        call: CALL_ON_7_3,
        again: AGAIN_ON_7_3,
        resched: &[
            // Measured to 99.5 %, and taken to end there.
            [4_768, 7_184, 8_400, 9_616, 11_552, 22_544, 30_240, 82_368, 82_368],
            [4_784, 6_880, 8_432, 10_496, 22_784, 32_480, 54_112, 111_248, 111_248],
            [4_400, 7_616, 8_432, 10_912, 33_664, 60_768, 92_784, 156_576, 156_576],
            [4_528, 7_632, 8_448, 11_312, 68_176, 117_168, 150_064, 209_888, 209_888],
        ],
        remote: &REMOTE_ON_7_3,
    },
    // 7.3.4+deb13-arm64
    Row {
        profile: "vm",
        from: KernelRev::V7_3,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: Amount::ByBusy(&LATE_ON_7_3),
        switch: [0, 0, 0, 1_040, 1_408, 3_920, 4_256, 5_200],
        wakeup: NOTHING,
        tick: NOTHING,
        irq: [29_552, 29_648, 29_808, 29_992, 30_104, 30_256, 30_352, 31_328],
        call: CALL_ON_7_3,
        again: AGAIN_ON_7_3,
        resched: &[
            [4_816, 7_776, 8_624, 10_096, 11_920, 22_496, 27_152, 75_504, 89_472],
            [4_992, 7_264, 8_656, 10_816, 23_616, 34_064, 52_128, 124_736, 197_904],
            [4_976, 7_936, 8_656, 11_552, 37_856, 68_736, 91_392, 158_672, 224_352],
            [4_976, 8_080, 8_688, 11_600, 82_864, 120_384, 180_224, 273_120, 343_520],
        ],
        remote: &REMOTE_ON_7_3,
    },
    Row {
        profile: "machine",
        from: KernelRev::V6_1,
        timer_slack_ns: TIMER_SLACK_NS,
        timer: Amount::Drawn(&[12_132, 14_179, 15_407, 16_405, 17_742, 19_445, 21_837, 32_085]),
        switch: [1_421, 1_439, 1_449, 1_460, 1_473, 1_488, 1_532, 1_959],
        wakeup: [3_350, 3_664, 3_869, 4_047, 4_231, 4_427, 4_692, 5_903],
        tick: [1_611, 2_874, 3_280, 3_584, 3_911, 9_673, 19_687, 26_377],
        irq: NOTHING,
        call: NOTHING,
        again: NOTHING,
        resched: &AT_ONCE,
        remote: &AT_ONCE,
    },
];

impl Row {
    pub(crate) fn of(&'static self, kind: Kind) -> Amount {
        Amount::Drawn(match kind {
            Kind::Timer => return self.timer,
            Kind::Switch => &self.switch,
            Kind::Wakeup => &self.wakeup,
            Kind::Tick => &self.tick,
            Kind::Irq => &self.irq,
            Kind::Call => &self.call,
            Kind::Again => &self.again,
            // Left out: the recordings that hold these profiles are older than today's agent and probes; of `chain`, asked again,
            // the kernel takes turns as often as with it.
            Kind::Preempt => return Amount::Fixed(Span(0)),
            Kind::Resched if *self.resched == AT_ONCE => return Amount::Fixed(Span(0)),
            Kind::Resched => return Amount::ByBusy(self.resched),
            Kind::Remote if *self.remote == AT_ONCE => return Amount::Fixed(Span(0)),
            Kind::Remote => return Amount::ByBusy(self.remote),
        })
    }

    /// The median; by busy CPUs, where no other one is.
    fn median(&'static self, kind: Kind) -> u64 {
        match self.of(kind) {
            Amount::Fixed(span) => span.0,
            Amount::Drawn(of) => (u64::from(of[3]) + u64::from(of[4])) / 2,
            Amount::ByBusy(of) => quantile(&of[0], 1 << 63).0,
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
    of_profile(settings.get(&NOISE)?, rev)
}

/// The median of a kind of cost under the profile that a policy names; `None`: nothing is drawn.
pub(crate) fn median(policy: &Policy, kind: Kind) -> Option<Value> {
    Some(Value::Int(named(policy)?.median(kind) as i64))
}

/// The slack of timers under the profile that a policy names; `None`: as if it were not set.
pub(crate) fn timer_slack(policy: &Policy) -> Option<Value> {
    Some(Value::Int(named(policy)?.timer_slack_ns.into()))
}

/// The row of the profile that a policy names.
fn named(policy: &Policy) -> Option<&'static Row> {
    let Some(Value::Name(profile)) = policy.said(&NOISE) else { return None };
    of_profile(profile, policy.kernel)
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
            let kinds = [row.switch, row.wakeup, row.tick, row.irq, row.call, row.again];
            assert!(kinds.iter().all(|e| e.is_sorted() && e[7] < 1_000_000), "{row:?}");
            let timer: Vec<&[u32]> = match row.timer {
                Amount::ByBusy(of) => of.iter().map(|of| &of[..]).collect(),
                Amount::Drawn(of) => vec![&of[..]],
                Amount::Fixed(_) => panic!("{row:?}"),
            };
            for of in
                timer.into_iter().chain(row.resched.iter().chain(row.remote).map(|of| &of[..]))
            {
                assert!(of.is_sorted() && of[of.len() - 1] < 1_000_000, "{row:?}");
            }
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
            timer_slack(&policy)
        };
        assert_eq!((of("linux-7.2"), of("linux-7.2+noise=off")), (None, None));
        assert_eq!(of("linux-7.2+noise=vm"), Some(Value::Int(50_000)));
    }
}
