//! The wide draw: experiments that nobody chose, from everything that a workload can say.
//!
//! ```text
//! wide(seed, number) ── platform, crowd, activities, attributes, groups, settings ──> Case
//!
//! crowd       1 task 1/5, 2–3 3/10, 4–6 3/10, 7–12 1/5
//! activities  until there are so many tasks: periodic, naps, hog, pipeline, lock, frames, burst, wave,
//!             fork, pool, barrier
//! attributes  of a case: all on one CPU, on two, or each task by itself; of a task: CPUs, nice, slice,
//!             policy, clamps, group, delay
//! ```
//!
//! Each thing is drawn from a number of its own, made of seed, case, what it is, and which one it is:
//! what a kernel [cannot](Can) do is left out, and all the rest of the case stays what it was. Shares over
//! 500 seeds stand in docs/wide-draw.md; a test sees to them.
//!
//! Left out: CPUs that go offline (the simulator has that only without groups and real-time tasks), machines
//! with more than eight CPUs (a boot of one takes minutes), and real-time or deadline tasks that want
//! more than a small part of a CPU (nothing else would run).

use super::set::Case;
use risetime_kernel::{KernelRev, features};
use risetime_model::Platform;
use risetime_model::workload::Tree;

/// Platforms on which it runs: one, two and three kinds of CPU, policies of one CPU and of many,
/// two to eight CPUs.
pub const WIDE_ON: [&str; 14] = [
    "chromebook2",
    "chromebook4",
    "exynos5800",
    "hikey620",
    "hikey960",
    "juno",
    "laptop4",
    "m1",
    "mobile200",
    "odroid-xu4",
    "pixel6",
    "rpi4",
    "xavier-agx",
    "zcu102",
];

/// The most tasks of a case, those that are forked not counted.
const MAX_TASKS: u64 = 12;

/// Abilities of a kernel, among what is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Can {
    /// Clamps (CONFIG_UCLAMP_TASK).
    pub uclamp: bool,
    /// Slices of a task's own, from 6.12 on.
    pub slices: bool,
    /// `base_slice_ns`, from 6.6 on.
    pub base_slice: bool,
}

impl Can {
    /// All of it.
    pub const ALL: Can = Can { uclamp: true, slices: true, base_slice: true };

    /// The abilities of a kernel of generation `rev`, with clamps or without.
    pub fn of(rev: KernelRev, uclamp: bool) -> Can {
        Can {
            uclamp,
            slices: rev.has(features::CUSTOM_SLICE),
            base_slice: rev.has(features::EEVDF),
        }
    }
}

/// Purpose of a drawn number: numbers of different purposes have nothing to do with each other.
#[derive(Clone, Copy)]
enum For {
    Machine,
    Crowd,
    Length,
    Activity,
    Work,
    Pins,
    Pin,
    Nice,
    Slice,
    Class,
    Clamp,
    Groups,
    Group,
    Member,
    Delay,
    Governor,
    RateLimit,
    MaxFreq,
    BaseSlice,
    RunClamp,
}

/// SplitMix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A generator whose numbers follow from `key` alone.
    fn keyed(key: [u64; 4]) -> Draw {
        Draw(key.into_iter().fold(0, |state, part| Draw(state ^ part).next()))
    }

    /// A number of `low..=high`.
    fn of(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// A number of `low..=high`, each doubling as likely as any other.
    fn log(&mut self, low: u64, high: u64) -> u64 {
        let doublings = (high / low).max(1).ilog2() as u64;
        let from = low << self.of(0, doublings);
        self.of(from, (2 * from).min(high))
    }

    /// Yes in one of `n` cases.
    fn one_in(&mut self, n: u64) -> bool {
        self.of(1, n) == 1
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.of(0, of.len() as u64 - 1) as usize]
    }
}

/// A task: its name, its keys, and what it lends itself to.
struct Task {
    name: String,
    keys: Vec<(String, Tree)>,
    /// µs of work and of period, where it has such: it may then be a real-time or deadline task.
    bounded: Option<(u64, u64)>,
    /// True if the task is forked or forks: it stays a fair task that may go anywhere.
    plain: bool,
}

/// A case being drawn.
struct Wide {
    seed: u64,
    number: u64,
    can: Can,
    cpus: u64,
    tasks: Vec<Task>,
    /// Tasks that start.
    count: u64,
}

/// Draws case `number` of `seed`, for a kernel that can do so much.
pub fn wide(seed: u64, number: u64, can: Can) -> Case {
    let mut w = Wide { seed, number, can, cpus: 0, tasks: Vec::new(), count: 0 };
    let name = w.draw(For::Machine, 0).pick(&WIDE_ON);
    let platform = Platform::load(name).expect("a built-in platform (a test loads each)");
    w.cpus = platform.nr_cpus() as u64;
    let mut crowd = w.draw(For::Crowd, 0);
    let wanted = match crowd.of(0, 9) {
        0 | 1 => 1,
        2..=4 => crowd.of(2, 3),
        5..=7 => crowd.of(4, 6),
        _ => crowd.of(7, MAX_TASKS),
    };
    let mut nth = 0;
    while w.count < wanted {
        w.activity(nth, wanted - w.count);
        nth += 1;
    }
    w.pin();
    w.classes();
    let groups = w.groups();
    w.clamps();
    let settings = w.settings(&platform);
    let tasks = Tree::object(w.tasks.into_iter().map(|t| (t.name, Tree::Object(t.keys))));
    let groups = groups.map(|g| ("taskgroups", g));
    let file = Tree::object(groups.into_iter().chain([("tasks", tasks)]));
    let ms = 100 * Draw::keyed([seed, number, For::Length as u64, 0]).of(8, 20);
    Case {
        name: format!("wide-{seed}-{number}"),
        platform: name.into(),
        settings,
        workload: file.to_string(),
        ms,
        wanted: 4,
    }
}

/// The case of a name such as `wide-7-3`: seed 7, number 3; `None`: it is no such name.
pub fn wide_named(name: &str, can: Can) -> Option<Case> {
    let (seed, number) = name.strip_prefix("wide-")?.split_once('-')?;
    let plain = |text: &str| text.parse().ok().filter(|n: &u64| n.to_string() == text);
    Some(wide(plain(seed)?, plain(number).filter(|n| *n > 0)?, can))
}

fn key(name: &str, value: Tree) -> (String, Tree) {
    (name.into(), value)
}

fn us(name: &str, us: u64) -> (String, Tree) {
    key(name, Tree::int(us as i64))
}

fn text(name: &str, value: &str) -> (String, Tree) {
    key(name, Tree::text(value))
}

/// A timer of every `period` µs.
fn timer(period: u64) -> (String, Tree) {
    key("timer", Tree::object([text("ref", "unique"), us("period", period)]))
}

fn for_ever() -> (String, Tree) {
    key("loop", Tree::int(-1))
}

impl Wide {
    fn draw(&self, what: For, nth: u64) -> Draw {
        Draw::keyed([self.seed, self.number, what as u64, nth])
    }

    /// Adds a task that starts; its name is the activity's with the number of the task.
    fn task(&mut self, name: &str, keys: Vec<(String, Tree)>, bounded: Option<(u64, u64)>) {
        self.tasks.push(Task { name: name.into(), keys, bounded, plain: false });
        self.count += 1;
    }

    /// The `nth` activity, of at most `room` tasks.
    fn activity(&mut self, nth: u64, room: u64) {
        let mut d = self.draw(For::Work, nth);
        let kind = self.draw(For::Activity, nth).of(0, 19);
        let name = |what: &str| format!("{what}{nth}");
        let (run, period) = (d.log(200, 6_400), d.log(4_000, 64_000));
        let periodic = |run| vec![for_ever(), us("run", run), timer(period)];
        match kind {
            4..=6 => {
                let keys = vec![for_ever(), us("run", run), us("sleep", d.log(1_000, 32_000))];
                self.task(&name("nap"), keys, None);
            }
            7 | 8 => {
                let keys = vec![for_ever(), us("run", 1_000_000)];
                self.task(&name("hog"), keys, None);
            }
            9 | 10 if room >= 2 => self.pipeline(&name("stage"), d.of(2, room.min(4)), &mut d),
            11 if room >= 2 => self.lock(&name("lock"), &mut d),
            12 if room >= 2 => self.frames(&name("frame"), &mut d),
            13 => self.burst(&name("burst"), &mut d),
            14 => self.wave(&name("wave"), &mut d),
            15 => self.fork(&name("fork"), &mut d),
            16 if room >= 2 => self.pool(&name("pool"), d.of(1, (room - 1).min(3)), &mut d),
            17 if room >= 2 => self.barrier(&name("meet"), d.of(2, room.min(3)), &mut d),
            18 => {
                let keys = vec![
                    for_ever(),
                    us("run", run),
                    text("yield", ""),
                    us("mem", 1 << d.of(12, 21)),
                    timer(period),
                ];
                self.task(&name("yield"), keys, None);
            }
            _ => self.task(&name("tick"), periodic(run), Some((run, period))),
        }
    }

    /// Adds a pipeline: each stage wakes the next; the first begins it with a timer.
    fn pipeline(&mut self, name: &str, stages: u64, d: &mut Draw) {
        let period = d.pick(&[8_000, 11_111, 16_667, 33_333]);
        let of = |i: u64| format!("{name}-{i}");
        for i in 0..stages {
            let mut keys = vec![for_ever()];
            if i > 0 {
                keys.push(text("suspend", &of(i)));
            }
            keys.push(us("run", d.log(200, 4_000)));
            if i + 1 < stages {
                keys.push(text("resume", &of(i + 1)));
            }
            if i == 0 {
                keys.push(timer(period));
            }
            self.task(&of(i), keys, None);
        }
    }

    /// Adds two tasks that need the same mutex for a part of what they do.
    fn lock(&mut self, name: &str, d: &mut Draw) {
        for i in 0..2 {
            let keys = vec![
                for_ever(),
                us("run", d.log(100, 3_200)),
                text("lock", name),
                us("run_locked", d.log(100, 3_200)),
                text("unlock", name),
                timer(d.log(6_000, 24_000)),
            ];
            self.task(&format!("{name}-{i}"), keys, None);
        }
    }

    /// Adds two tasks: one begins a frame and wakes the other by a condition.
    fn frames(&mut self, name: &str, d: &mut Draw) {
        let cond = format!("{name}-ready");
        let first = vec![
            for_ever(),
            us("run", d.log(200, 3_200)),
            text("lock", name),
            text("signal", &cond),
            text("unlock", name),
            timer(d.pick(&[8_333, 11_111, 16_667])),
        ];
        let wait = Tree::object([text("ref", &cond), text("mutex", name)]);
        let second = vec![
            for_ever(),
            text("lock", name),
            key("wait", wait),
            text("unlock", name),
            us("run", d.log(200, 6_400)),
        ];
        self.task(&format!("{name}-0"), first, None);
        self.task(&format!("{name}-1"), second, None);
    }

    /// Naps, then a long activation, then a long sleep.
    fn burst(&mut self, name: &str, d: &mut Draw) {
        let naps = Tree::object([
            us("loop", d.of(2, 20)),
            us("run", d.log(50, 1_600)),
            us("sleep", d.log(4_000, 16_000)),
        ]);
        let long = Tree::object([us("run", d.log(16_000, 128_000))]);
        let rest = Tree::object([us("sleep", d.log(20_000, 160_000))]);
        let phases = Tree::object([("naps", naps), ("long", long), ("rest", rest)]);
        self.task(name, vec![for_ever(), key("phases", phases)], None);
    }

    /// Adds periodic work that becomes more and less from phase to phase.
    fn wave(&mut self, name: &str, d: &mut Draw) {
        let period = d.log(8_000, 32_000);
        let phase = |d: &mut Draw, i: u64| {
            let run = period * d.of(1, 60) / 100;
            (
                format!("level{i}"),
                Tree::object([us("loop", d.of(3, 15)), us("run", run), timer(period)]),
            )
        };
        let levels = d.of(2, 5);
        let phases = Tree::object((0..levels).map(|i| phase(d, i)).collect::<Vec<_>>());
        self.task(name, vec![for_ever(), key("phases", phases)], None);
    }

    /// A task that begins others, which end.
    fn fork(&mut self, name: &str, d: &mut Draw) {
        let child = format!("{name}-child");
        let keys = vec![
            for_ever(),
            us("run", d.log(200, 6_400)),
            text("fork", &child),
            us("run_on", d.log(200, 3_200)),
            timer(d.log(40_000, 160_000)),
        ];
        self.task(name, keys, None);
        let keys = vec![
            us("instance", 0),
            us("loop", d.of(1, 4)),
            us("run", d.log(400, 6_400)),
            us("sleep", d.log(1_000, 8_000)),
        ];
        self.tasks.push(Task { name: child, keys, bounded: None, plain: true });
        if let Some(parent) = self.tasks.iter_mut().rev().nth(1) {
            parent.plain = true;
        }
    }

    /// Adds a task that hands jobs to a pool of workers.
    fn pool(&mut self, name: &str, workers: u64, d: &mut Draw) {
        let mut keys = vec![for_ever(), us("run", d.log(100, 1_600))];
        keys.extend((0..d.of(1, 2 * workers)).map(|_| text("sem_post", name)));
        keys.push(timer(d.log(6_000, 24_000)));
        self.task(&format!("{name}-boss"), keys, None);
        let run = d.log(200, 3_200);
        for i in 0..workers {
            let keys = vec![for_ever(), text("sem_wait", name), us("run", run)];
            self.task(&format!("{name}-{i}"), keys, None);
        }
    }

    /// Tasks that wait for each other before each rest.
    fn barrier(&mut self, name: &str, tasks: u64, d: &mut Draw) {
        let sleep = d.log(2_000, 16_000);
        for i in 0..tasks {
            let keys = vec![
                for_ever(),
                us("run", d.log(400, 12_800)),
                text("barrier", name),
                us("sleep", sleep),
            ];
            self.task(&format!("{name}-{i}"), keys, None);
        }
    }

    /// Draws on which CPUs the tasks may run.
    fn pin(&mut self) {
        let mut d = self.draw(For::Pins, 0);
        let together = match d.of(0, 9) {
            0 | 1 => Some(1),
            2 => Some(2),
            _ => None,
        };
        let first = d.of(0, self.cpus - 1);
        let mask = |d: &mut Draw, first: u64, n: u64| {
            let second = (first + d.of(1, self.cpus - 1)) % self.cpus;
            let mut cpus = vec![first, second];
            cpus.truncate(n as usize);
            cpus.sort_unstable();
            key("cpus", Tree::List(cpus.into_iter().map(|c| Tree::int(c as i64)).collect()))
        };
        let all = together.map(|n| mask(&mut d, first, n));
        let own = |i: usize| {
            let mut d = self.draw(For::Pin, i as u64);
            let first = d.of(0, self.cpus - 1);
            let n = d.of(1, 2);
            d.one_in(6).then(|| mask(&mut d, first, n))
        };
        let masks: Vec<_> = (0..self.tasks.len()).map(|i| all.clone().or_else(|| own(i))).collect();
        for (task, mask) in self.tasks.iter_mut().zip(masks) {
            task.keys.splice(0..0, mask);
        }
    }

    /// Draws policy, nice value, slice and delay of each task.
    fn classes(&mut self) {
        let (mut real_time, mut deadline) = (0, 0);
        for i in 0..self.tasks.len() {
            let mut d = self.draw(For::Class, i as u64);
            let (class, low, high) = (d.of(0, 29), d.of(1, 90), d.of(20, 120));
            let task = &self.tasks[i];
            let pinned = task.keys.first().is_some_and(|(k, _)| k == "cpus");
            let mut keys = Vec::new();
            let mut fair = true;
            match (class, task.bounded) {
                (0..=6, Some((run, period))) if real_time < 3 && !task.plain => {
                    let policy = if class < 4 { "SCHED_FIFO" } else { "SCHED_RR" };
                    keys = vec![text("policy", policy), us("priority", low)];
                    // A tenth of the largest CPU at most.
                    self.set_run(i, run.min(period / 10).max(50));
                    (real_time, fair) = (real_time + 1, false);
                }
                (7..=12, Some((_, period))) if deadline < 2 && !pinned && !task.plain => {
                    let runtime = (period * d.of(3, 12) / 100).max(100);
                    keys = vec![
                        text("policy", "SCHED_DEADLINE"),
                        us("dl-runtime", runtime),
                        us("dl-period", period),
                    ];
                    if d.one_in(3) {
                        keys.push(us("dl-deadline", period * d.of(50, 100) / 100));
                    }
                    if d.one_in(4) {
                        keys.push(key("dl-reclaim", Tree::Plain("true".into())));
                    }
                    self.set_run(i, (runtime * high / 100).max(50));
                    (deadline, fair) = (deadline + 1, false);
                }
                (13..=15, _) => keys = vec![text("policy", "SCHED_BATCH")],
                (16 | 17, _) => keys = vec![text("policy", "SCHED_IDLE")],
                _ => {}
            }
            let mut d = self.draw(For::Nice, i as u64);
            if fair && class != 16 && class != 17 {
                if d.one_in(3) {
                    keys.push(key("priority", Tree::int(d.of(0, 24) as i64 - 12)));
                }
                let mut d = self.draw(For::Slice, i as u64);
                if d.one_in(8) && self.can.slices {
                    keys.push(us("dl-runtime", d.log(100, 20_000)));
                }
            }
            let mut d = self.draw(For::Delay, i as u64);
            if i > 0 && !self.is_forked(i) && d.one_in(4) {
                keys.push(us("delay", d.log(1_000, 128_000)));
            }
            self.tasks[i].keys.splice(0..0, keys);
        }
    }

    fn is_forked(&self, task: usize) -> bool {
        self.tasks[task].keys.iter().any(|(k, v)| k == "instance" && v.as_int() == Some(0))
    }

    fn set_run(&mut self, task: usize, run: u64) {
        let runs = self.tasks[task].keys.iter_mut().filter(|(k, _)| k == "run");
        runs.for_each(|(_, v)| *v = Tree::int(run as i64));
    }

    fn is_fair(&self, task: usize) -> bool {
        let policy = self.tasks[task].keys.iter().find(|(k, _)| k == "policy").map(|(_, v)| v);
        policy.is_none_or(|p| [Tree::text("SCHED_BATCH"), Tree::text("SCHED_IDLE")].contains(p))
    }

    /// Draws task groups in one case of three, and who is in them; real-time and deadline tasks
    /// stay outside.
    fn groups(&mut self) -> Option<Tree> {
        const PATHS: [&[&str]; 4] =
            [&["/a"], &["/a", "/b"], &["/a", "/a/x"], &["/a", "/b", "/b/y"]];
        let mut d = self.draw(For::Groups, 0);
        if !d.one_in(3) {
            return None;
        }
        let paths = d.pick(&PATHS);
        let mut members = 0;
        for i in 0..self.tasks.len() {
            let mut d = self.draw(For::Member, i as u64);
            let path = d.pick(paths);
            // The first fair one is in a group in any case.
            if self.is_fair(i) && (d.one_in(2) || members == 0) {
                self.tasks[i].keys.insert(0, text("taskgroup", path));
                members += 1;
            }
        }
        (members > 0).then(|| {
            let group = |(i, path): (usize, &&str)| (path.to_string(), self.group(i as u64));
            Tree::object(paths.iter().enumerate().map(group).collect::<Vec<_>>())
        })
    }

    fn group(&self, nth: u64) -> Tree {
        let mut d = self.draw(For::Group, nth);
        let mut keys = Vec::new();
        let idle = d.one_in(10);
        if idle {
            keys.push(us("idle", 1));
        } else if d.of(1, 3) <= 2 {
            keys.push(us("weight", d.log(20, 640)));
        }
        if d.one_in(3) {
            let period = d.log(10_000, 100_000);
            let quota = (period * d.of(10, 150) / 100).max(2_000);
            keys.extend([us("quota_us", quota), us("period_us", period)]);
            if d.one_in(4) {
                keys.push(us("burst_us", quota * d.of(10, 100) / 100));
            }
        }
        let mut d = self.draw(For::Clamp, 1_000 + nth);
        if self.can.uclamp && d.one_in(5) {
            keys.extend(clamps(&mut d, ["uclamp_min", "uclamp_max"]));
        }
        Tree::Object(keys)
    }

    /// Clamps of one fair task in five.
    fn clamps(&mut self) {
        if !self.can.uclamp {
            return;
        }
        for i in 0..self.tasks.len() {
            let mut d = self.draw(For::Clamp, i as u64);
            if self.is_fair(i) && d.one_in(5) {
                self.tasks[i].keys.splice(0..0, clamps(&mut d, ["util_min", "util_max"]));
            }
        }
    }

    /// Numbers that tasks have under this key.
    fn all(&self, name: &str) -> impl Iterator<Item = u64> {
        let keys = self.tasks.iter().flat_map(|task| &task.keys);
        keys.filter_map(move |(key, value)| match value {
            Tree::Plain(number) if key == name => number.parse().ok(),
            _ => None,
        })
    }

    /// Draws what is set beside the workload, `+key=value…`.
    fn settings(&self, platform: &Platform) -> String {
        let mut all = String::new();
        let mut set = |key: &str, value: String| all += &format!("+{key}={value}");
        let governor = self.draw(For::Governor, 0).of(0, 19);
        match governor {
            0 | 1 => set("governor", "performance".into()),
            2 => set("governor", "powersave".into()),
            _ => {}
        }
        let mut d = self.draw(For::RateLimit, 0);
        if governor > 2 && d.one_in(4) {
            set("rate_limit_us", d.of(0, 20_000).to_string());
        }
        let mut d = self.draw(For::MaxFreq, 0);
        if d.one_in(10) {
            let domain = &platform.domains[d.of(0, platform.domains.len() as u64 - 1) as usize];
            let opp = domain.opps[d.of(0, domain.opps.len() as u64 - 1) as usize].freq.0;
            set(&format!("scaling_max_freq.policy{}", domain.cpus[0].0), opp.to_string());
        }
        let mut d = self.draw(For::BaseSlice, 0);
        if d.one_in(10) && self.can.base_slice {
            set("base_slice_ns", (1_000 * d.log(300, 9_600)).to_string());
        }
        let mut d = self.draw(For::RunClamp, 0);
        if d.one_in(12) && self.can.uclamp {
            let (name, drawn) = (d.pick(&["uclamp_min", "uclamp_max"]), d.of(0, 1024));
            // No kernel takes one for a task whose own other clamp it passes.
            let value = match name {
                "uclamp_min" => self.all("util_max").fold(drawn, u64::min),
                _ => self.all("util_min").fold(drawn, u64::max),
            };
            set(name, value.to_string());
        }
        all
    }
}

/// Draws one of the two clamps, or both.
fn clamps(d: &mut Draw, names: [&str; 2]) -> Vec<(String, Tree)> {
    let (a, b, which) = (d.of(0, 1024), d.of(0, 1024), d.of(0, 2));
    let both = [us(names[0], a.min(b)), us(names[1], a.max(b))];
    let keep = |(i, clamp): (u64, (String, Tree))| (which == 2 || which == i).then_some(clamp);
    (0..).zip(both).filter_map(keep).collect()
}
