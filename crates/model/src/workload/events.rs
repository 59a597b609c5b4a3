//! The keys of rt-app: which are events, which are attributes, and which are not supported.

/// The events that are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A fixed amount of work.
    Run,
    /// Running for a fixed time.
    Runtime,
    /// Sleeping for a fixed time.
    Sleep,
    /// Sleeping until a timer fires.
    Timer,
}

/// What a key of a task or phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// An attribute or structural key, by its exact name.
    Property(&'static str),
    /// An event.
    Event(Kind),
    /// rt-app has it and the simulator does not, yet; the kind's name.
    Unsupported(&'static str),
    /// Nobody knows it.
    Unknown,
}

/// Keys that are recognised by their whole name; the second column: may a phase have it?
pub(super) const PROPERTIES: [(&str, bool); 14] = [
    ("cpus", true),
    ("delay", false),
    ("dl-deadline", true),
    ("dl-period", true),
    ("dl-reclaim", true),
    ("dl-runtime", true),
    ("instance", false),
    ("loop", true),
    ("phases", false),
    ("policy", true),
    ("priority", true),
    ("sched_qos", true),
    ("util_max", true),
    ("util_min", true),
];

/// The supported events, for messages.
pub(super) const EVENTS: &str = "run, runtime, sleep, timer";

/// Properties of rt-app that have no counterpart here.
const OTHER_PROPERTIES: [&str; 7] = [
    "deadline",
    "period",
    "lock_order",
    "resources",
    "taskgroup",
    "membind_nodes",
    "nodes_membind",
];

/// Events of rt-app by prefix. `runtime` stands before `run`, as a prefix must not shadow a
/// longer one.
const PREFIXES: [(&str, Option<Kind>); 17] = [
    ("lock", None),
    ("unlock", None),
    ("wait", None),
    ("signal", None),
    ("broad", None),
    ("sync", None),
    ("sleep", Some(Kind::Sleep)),
    ("runtime", Some(Kind::Runtime)),
    ("run", Some(Kind::Run)),
    ("timer", Some(Kind::Timer)),
    ("suspend", None),
    ("resume", None),
    ("mem", None),
    ("iorun", None),
    ("yield", None),
    ("barrier", None),
    ("fork", None),
];

/// What `key` is. Source: rt-app, `src/rt-app_parse_config.c:obj_is_event`.
pub(super) fn classify(key: &str) -> Key {
    if let Some((name, _)) = PROPERTIES.iter().find(|(name, _)| *name == key) {
        return Key::Property(name);
    }
    if let Some(name) = OTHER_PROPERTIES.iter().find(|name| **name == key) {
        return Key::Unsupported(name);
    }
    match PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix)) {
        Some((_, Some(kind))) => Key::Event(*kind),
        Some((name, None)) => Key::Unsupported(name),
        None => Key::Unknown,
    }
}

/// Keys of `global` that are accepted and have no effect, each with the reason.
pub(super) const GLOBAL_WITHOUT_EFFECT: [(&str, &str); 11] = [
    ("cumulative_slack", "slack is not logged"),
    ("ftrace", "the trace has every event already"),
    ("gnuplot", "plots come from `risetime run`"),
    ("io_device", "there is no I/O event"),
    ("lock_pages", "there is no paging"),
    ("log_basename", "rt-app's log files are not written"),
    ("log_size", "rt-app's log files are not written"),
    ("logdir", "rt-app's log files are not written"),
    ("mem_buffer_size", "there is no memory event"),
    ("pi_enabled", "there are no locks"),
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
            ("unlock2", Key::Unsupported("unlock")),
            ("membind_nodes", Key::Unsupported("membind_nodes")),
            ("memory", Key::Unsupported("mem")),
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
