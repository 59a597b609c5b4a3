//! The keys of rt-app: which are events, which are attributes, and which are not supported.

/// The events of rt-app; `duty` and `kind` are not its.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Run,
    Runtime,
    Sleep,
    Timer,
    Mem,
    Memrun,
    Iorun,
    Duty,
    Yield,
    Fork,
    Lock,
    Unlock,
    Wait,
    Signal,
    Broad,
    Sync,
    Suspend,
    Resume,
    Barrier,
    SemWait,
    SemPost,
    /// No event: of which kind the work behind it is.
    Work,
}

/// Meaning of a key of a task or phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// An attribute or structural key, by its exact name.
    Property(&'static str),
    /// An event.
    Event(Kind),
    /// rt-app has it, or had it once, and nothing here stands for it: what it is, and what to say
    /// instead.
    Unsupported(&'static str, &'static str),
    /// The key is not known.
    Unknown,
}

/// Keys that are recognised by their whole name; the second column: may a phase have it?
pub(super) const PROPERTIES: [(&str, bool); 20] = [
    ("cpus", true),
    ("delay", false),
    ("dl-deadline", true),
    ("dl-period", true),
    ("dl-reclaim", true),
    ("dl-runtime", true),
    ("instance", false),
    ("job", false),
    ("latency_nice", true),
    ("loop", true),
    ("membind_nodes", true),
    ("nodes_membind", true),
    ("phases", false),
    ("policy", true),
    ("priority", true),
    ("sched_qos", true),
    ("share", true),
    ("taskgroup", true),
    ("util_max", true),
    ("util_min", true),
];

/// The supported events, for messages.
pub(super) const EVENTS: &str = "run, runtime, sleep, timer, mem, memrun, iorun, duty, yield, fork, lock, \
     unlock, wait, signal, broad, sync, suspend, resume, barrier, sem_wait, sem_post, kind";

/// Older names, which rt-app reads for the sake of old files, and what they are called now. (`runtime` for
/// `dl-runtime` is not among them: it is an event.)
pub(super) const OLDER_NAMES: [(&str, &str); 2] =
    [("deadline", "dl-deadline"), ("period", "dl-period")];

/// Keys from before rt-app 1.0, which knew no events.
const WITHOUT_EVENTS: [&str; 3] = ["exec", "lock_order", "resources"];
/// Prefix of keys that call a function of a shared library.
const EXTERNAL: &str = "external_workload";

/// Events by prefix. A longer prefix stands before one that it begins with.
const PREFIXES: [(&str, Kind); 22] = [
    ("lock", Kind::Lock),
    ("unlock", Kind::Unlock),
    ("wait", Kind::Wait),
    ("signal", Kind::Signal),
    ("broad", Kind::Broad),
    ("sync", Kind::Sync),
    ("sleep", Kind::Sleep),
    ("runtime", Kind::Runtime),
    ("run", Kind::Run),
    ("timer", Kind::Timer),
    ("suspend", Kind::Suspend),
    ("resume", Kind::Resume),
    ("memrun", Kind::Memrun),
    ("mem", Kind::Mem),
    ("iorun", Kind::Iorun),
    ("duty", Kind::Duty),
    ("yield", Kind::Yield),
    ("barrier", Kind::Barrier),
    ("fork", Kind::Fork),
    ("sem_wait", Kind::SemWait),
    ("sem_post", Kind::SemPost),
    ("kind", Kind::Work),
];

/// Classifies `key`. Source: rt-app, `src/rt-app_parse_config.c:obj_is_event`.
pub(super) fn classify(key: &str) -> Key {
    if let Some((name, _)) = PROPERTIES.iter().find(|(name, _)| *name == key) {
        return Key::Property(name);
    }
    if let Some((_, now)) = OLDER_NAMES.iter().find(|(older, _)| *older == key) {
        return Key::Property(now);
    }
    if WITHOUT_EVENTS.contains(&key) {
        return Key::Unsupported(
            "is of rt-app before 1.0: since then a task is a list of events",
            "`run`, `sleep`, `timer`, `lock`, `unlock`, `wait` and `signal`, in order, say the same",
        );
    }
    if key.starts_with(EXTERNAL) {
        return Key::Unsupported(
            "calls a function of a shared library, of which nothing is known here",
            "say what it does: `run`, `runtime`, `mem`, `iorun`, `sleep`",
        );
    }
    match PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix)) {
        Some((_, kind)) => Key::Event(*kind),
        None => Key::Unknown,
    }
}

/// Keys of `global` that are accepted and have no effect, each with the reason.
pub(super) const GLOBAL_WITHOUT_EFFECT: [(&str, &str); 10] = [
    ("cumulative_slack", "slack is not logged"),
    ("frag", "rt-app no longer reads it either"),
    ("ftrace", "the trace has every event already"),
    ("gnuplot", "plots come from `risetime run`"),
    ("lock_pages", "there is no paging"),
    ("log_basename", "rt-app's log files are not written"),
    ("log_level", "rt-app's messages are not printed"),
    ("log_size", "rt-app's log files are not written"),
    ("logdir", "rt-app's log files are not written"),
    ("spacing", "tasks start together, or after their `delay`"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_by_prefix_and_the_longer_prefix_wins() {
        for (key, want) in [
            ("run", Key::Event(Kind::Run)),
            ("run1", Key::Event(Kind::Run)),
            ("run_light", Key::Event(Kind::Run)),
            ("runtime", Key::Event(Kind::Runtime)),
            ("runtime7", Key::Event(Kind::Runtime)),
            ("sleep_x", Key::Event(Kind::Sleep)),
            ("timerA", Key::Event(Kind::Timer)),
            ("loop", Key::Property("loop")),
            ("looping", Key::Unknown),
            ("unlock2", Key::Event(Kind::Unlock)),
            ("sem_wait3", Key::Event(Kind::SemWait)),
            ("membind_nodes", Key::Property("membind_nodes")),
            ("memory", Key::Event(Kind::Mem)),
            ("memrun_a", Key::Event(Kind::Memrun)),
            ("taskgroup", Key::Property("taskgroup")),
            ("period", Key::Property("dl-period")),
            ("deadline", Key::Property("dl-deadline")),
            ("periods", Key::Unknown),
            ("Run", Key::Unknown),
            ("", Key::Unknown),
        ] {
            assert_eq!(classify(key), want, "{key}");
        }
    }

    #[test]
    fn no_prefix_is_shadowed_by_an_earlier_shorter_one() {
        for (i, (long, _)) in PREFIXES.iter().enumerate() {
            for (short, _) in &PREFIXES[..i] {
                assert!(!long.starts_with(short), "`{short}` hides `{long}`");
            }
        }
    }
}
