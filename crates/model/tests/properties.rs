//! What holds for every platform and for every input, good or bad.

use crate::draws;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use risetime_kernel::units::{Capacity, CpuId, KHz, MicroWatts, Span};
use risetime_model::platform::{Domain, IdleState, Opp, Topology};
use risetime_model::workload::{self, Event, Repeat};
use risetime_model::{Platform, Policy, Workload, library};
use std::collections::BTreeSet;

/// Text with what needs quoting in TOML.
fn prose() -> impl Strategy<Value = String> {
    vec(
        select(vec!['a', 'é', '"', '\\', '\n', '\t', '\u{1}', '#', '=', ' ', '\'', '\u{7f}', '😀']),
        0..12,
    )
    .prop_map(|c| c.into_iter().collect())
}

fn opps() -> impl Strategy<Value = Vec<Opp>> {
    let opp = (0..=1_000_000_000u64, 0..=u64::from(u32::MAX));
    (btree_map(1..=100_000_000u64, opp, 1..20), any::<bool>()).prop_map(|(map, powered)| {
        map.into_iter()
            .map(|(f, (p, l))| Opp::new(KHz(f), MicroWatts(if powered { p } else { 0 }), Span(l)))
            .collect()
    })
}

fn idle() -> impl Strategy<Value = Vec<IdleState>> {
    let state = (0..=1_000_000_000u64, 0..=1_000_000_000u64, 0..=1_000_000_000u64);
    vec(state, 0..=10).prop_map(|mut states| {
        states.sort_by_key(|s| s.1);
        let named = states.into_iter().enumerate();
        named
            .map(|(i, (exit, residency, power))| {
                let us = Span::from_us;
                IdleState::new(&format!("C{i}"), us(exit), us(residency), MicroWatts(power))
            })
            .collect()
    })
}

fn domain() -> impl Strategy<Value = Domain> {
    let delay = proptest::option::of(1..=4_294_967u32);
    (0..1024u32, 1..=1024u64, any::<bool>(), delay, opps(), idle()).prop_map(
        |(cluster, capacity, fast_switch, transition_delay_us, opps, idle)| Domain {
            cpus: Vec::new(),
            cluster,
            capacity: Capacity(capacity),
            fast_switch,
            transition_delay_us,
            energy_model: true,
            opps,
            levels: None,
            idle,
            work: Vec::new(),
        },
    )
}

/// Pairs of a domain's CPUs as cores, and the even caches apart from the odd ones.
fn topology(domains: &[Domain], (smt, numa, distance): (bool, bool, u32)) -> Topology {
    let pairs = domains.iter().flat_map(|d| d.cpus.chunks_exact(2).map(<[CpuId]>::to_vec));
    let mut cores: Vec<Vec<CpuId>> = pairs.filter(|_| smt).collect();
    cores.sort();
    let node = |odd: u32| {
        let of = domains.iter().filter(|d| d.cluster % 2 == odd);
        let mut cpus: Vec<CpuId> = of.flat_map(|d| d.cpus.iter().copied()).collect();
        cpus.sort();
        cpus
    };
    let nodes = vec![node(0), node(1)];
    if !numa || nodes.iter().any(Vec::is_empty) {
        return Topology { cores, ..Topology::default() };
    }
    let distance = vec![vec![10, distance], vec![distance, 10]];
    Topology { cores, nodes, distance, ..Topology::default() }
}

/// Any valid platform; which CPU is in which domain is drawn freely.
fn platform() -> impl Strategy<Value = Platform> {
    let sources = btree_map("[a-zA-Z0-9 ._é\"-]{1,12}", prose(), 0..4);
    let shared = (any::<bool>(), any::<bool>(), 11..=254u32);
    let domains = (vec(domain(), 1..6), 1..=3usize);
    (domains, vec(any::<Index>(), 1..40), 24..=10_000u32, prose(), sources, shared).prop_map(
        |((domains, copies), cpus, hz, about, mut sources, shared)| {
            // Copies make runs of domains alike.
            let mut domains: Vec<Domain> =
                domains.iter().flat_map(|d| vec![d.clone(); copies]).collect();
            let n = domains.len();
            for (cpu, index) in cpus.iter().enumerate() {
                domains[index.index(n)].cpus.push(CpuId(cpu as u32));
            }
            domains.retain(|d| !d.cpus.is_empty());
            domains.sort_by_key(|d| d.cpus[0]);
            sources.retain(|_, v| !v.trim().is_empty());
            sources.insert("capacity".into(), "estimate".into());
            sources.insert("opp".into(), "a \"quoted\" \\ source".into());
            let topology = topology(&domains, shared);
            Platform {
                name: "gen".into(),
                about,
                hz,
                domains,
                topology,
                thermal: Vec::new(),
                sources,
                doubts: Vec::new(),
            }
        },
    )
}

/// What [`Platform`] promises.
fn hold_platform(p: &Platform) {
    let mut cpus: Vec<u32> = p.domains.iter().flat_map(|d| &d.cpus).map(|c| c.0).collect();
    cpus.sort_unstable();
    assert_eq!(cpus, (0..cpus.len() as u32).collect::<Vec<_>>());
    assert!(p.domains.windows(2).all(|w| w[0].cpus[0] < w[1].cpus[0]));
    for d in &p.domains {
        assert!((1..=1024).contains(&d.capacity.0));
        assert!(!d.opps.is_empty());
        assert!(d.opps.windows(2).all(|w| w[0].freq < w[1].freq));
        assert!(d.cpus.windows(2).all(|w| w[0] < w[1]));
    }
    assert!(p.tick().0 > 0);
    // Its doubts are at places of the file.
    let said = |p: Platform| Platform { doubts: Vec::new(), ..p };
    let again = Platform::parse(&p.to_toml(), "again.toml").map(said);
    assert_eq!(again, Ok(said(p.clone())));
    for line in p.warnings() {
        assert!(!line.contains('\n'));
    }
}

/// What [`Workload`] promises.
fn hold_workload(w: &Workload) {
    assert!((1..=workload::MAX_TASKS).contains(&w.tasks.len()));
    let names: BTreeSet<&str> = w.tasks.iter().map(|t| t.comm.as_str()).collect();
    assert_eq!(names.len(), w.tasks.len(), "names are distinct");
    let takes = |repeat: Repeat, e: &Event| match repeat {
        Repeat::Forever => e.takes_time(),
        Repeat::Times(_) => e.acts(),
    };
    for t in w.tasks.iter().chain(&w.forked) {
        let (mut min, mut max) = (0, 1024);
        for a in std::iter::once(&t.attr).chain(t.phases.iter().map(|p| &p.attr)) {
            min = a.uclamp_min.map_or(min, |u| u.0);
            max = a.uclamp_max.map_or(max, |u| u.0);
            assert!(min <= max && max <= 1024);
        }
        assert!(!t.phases.is_empty());
        for p in &t.phases {
            assert!(!p.events.is_empty());
            assert!(p.repeat == Repeat::Times(1) || p.events.iter().any(|e| takes(p.repeat, e)));
        }
        let events = || t.phases.iter().flat_map(|p| &p.events);
        assert!(t.repeat == Repeat::Times(1) || events().any(|e| takes(t.repeat, e)));
        assert!(
            t.repeat != Repeat::Times(0) && t.phases.iter().all(|p| p.repeat != Repeat::Times(0))
        );
    }
}

/// Reads `text` as everything; whatever is accepted must keep its promises, and whatever is
/// refused must have a message that starts with the place.
fn read_as_everything(text: &str) {
    match Platform::parse(text, "in.toml") {
        Ok(p) => hold_platform(&p),
        Err(e) => assert!(e.place.starts_with("in.toml") && !e.what.is_empty()),
    }
    match Workload::parse(text, "in.json") {
        Ok(w) => {
            hold_workload(&w);
            if let Ok(m1) = Platform::load("m1") {
                let _ = w.bind(&m1).map(|w| hold_workload(&w));
            }
        }
        Err(e) => {
            assert!(e.place.starts_with("in.json") && !e.what.is_empty());
            assert!(!e.what.contains('\n'), "{}", e.what);
        }
    }
    if let Err(e) = Policy::parse(text, "in.toml") {
        assert!(e.place.starts_with("in.toml") && !e.what.is_empty());
    }
}

/// The files that are mutated: built-ins, and one that uses every feature.
fn seeds() -> Vec<String> {
    let mut all: Vec<String> = [library::platforms(), library::policies(), library::workloads()]
        .into_iter()
        .flatten()
        .map(|e| e.text.to_string())
        .collect();
    all.push(
        r#"{"tasks": {"a": {"instance": 3, "delay": 7, "cpus": [0, 1], "util_min": 5, "util_max": 900,
            "loop": 2, "phases": {"p": {"loop": 3, "run": 1, "run": 2, "runtime": 3, "sleep": 4,
            "timer": {"ref": "unique", "period": 5, "mode": "relative"}, "priority": -3}}}},
            "global": {"duration": 3, "calibration": "CPU1", "logdir": "."}}"#
            .into(),
    );
    all
}

/// One change to a text.
#[derive(Clone, Debug)]
enum Change {
    Delete(Index, usize),
    Insert(Index, &'static str),
    Repeat(Index, usize, usize),
    Number(Index, &'static str),
    /// One number of the file in the place of another.
    Copy(Index, Index),
}

fn change() -> impl Strategy<Value = Change> {
    let tokens = vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "=",
        "\n",
        "//",
        "/*",
        "*/",
        "#",
        "-",
        ".",
        "e9",
        "0",
        "1",
        "true",
        "null",
        "\0",
        "é",
        "\\u0000",
        "\\",
        "[[domain]]\n",
        "\"run\": 0, ",
        "\"loop\": -1,",
    ];
    let numbers = vec![
        "0",
        "-1",
        "1",
        "1024",
        "1025",
        "0.5",
        "4294967296",
        "9223372036854775807",
        "18446744073709551616",
        "1e400",
        "0x10",
        "nan",
        "\"7\"",
    ];
    prop_oneof![
        1 => (any::<Index>(), 1..20usize).prop_map(|(at, n)| Change::Delete(at, n)),
        1 => (any::<Index>(), select(tokens)).prop_map(|(at, s)| Change::Insert(at, s)),
        1 => (any::<Index>(), 1..80usize, 1..5usize).prop_map(|(at, n, k)| Change::Repeat(at, n, k)),
        4 => (any::<Index>(), select(numbers)).prop_map(|(at, s)| Change::Number(at, s)),
        4 => (any::<Index>(), any::<Index>()).prop_map(|(to, from)| Change::Copy(to, from)),
    ]
}

fn apply(text: &str, change: &Change) -> String {
    let chars: Vec<char> = text.chars().collect();
    let part = |from: usize, to: usize| -> String {
        chars[from.min(chars.len())..to.min(chars.len())].iter().collect()
    };
    let end = chars.len();
    match change {
        Change::Delete(at, n) => {
            let at = at.index(end + 1);
            part(0, at) + &part(at + n, end)
        }
        Change::Insert(at, s) => {
            let at = at.index(end + 1);
            part(0, at) + s + &part(at, end)
        }
        Change::Repeat(at, n, k) => {
            let at = at.index(end + 1);
            part(0, at + n) + &part(at, at + n).repeat(*k) + &part(at + n, end)
        }
        Change::Number(at, s) => match number(&chars, at) {
            Some((from, to)) => part(0, from) + s + &part(to, end),
            None => text.into(),
        },
        Change::Copy(at, source) => match (number(&chars, at), number(&chars, source)) {
            (Some((from, to)), Some((a, b))) => part(0, from) + &part(a, b) + &part(to, end),
            _ => text.into(),
        },
    }
}

/// Finds one of the numbers; returns where it stands.
fn number(chars: &[char], which: &Index) -> Option<(usize, usize)> {
    let digit = |i: &usize| chars[*i].is_ascii_digit();
    let starts: Vec<usize> =
        (0..chars.len()).filter(digit).filter(|i| *i == 0 || !digit(&(i - 1))).collect();
    let from = *starts.get(which.index(starts.len().max(1)))?;
    Some((from, (from..chars.len()).find(|i| !digit(i)).unwrap_or(chars.len())))
}

proptest! {
    #![proptest_config(draws::config(200))]

    #[test]
    fn a_platform_survives_being_written_and_read(p in platform()) {
        hold_platform(&p);
    }

    #[test]
    fn anything_at_all_is_read_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        read_as_everything(&String::from_utf8_lossy(&bytes));
    }
}

proptest! {
    #![proptest_config(draws::config(5000))]

    #[test]
    fn a_changed_file_keeps_its_promises_or_is_refused(
        seed in select(seeds()),
        changes in vec(change(), 1..4),
    ) {
        let text = changes.iter().fold(seed, |text, c| apply(&text, c));
        read_as_everything(&text);
    }
}

#[test]
fn every_truncation_of_a_file_is_read_or_refused() {
    for text in seeds() {
        let step = (text.len() / 200).max(1);
        for (at, _) in text.char_indices().step_by(step) {
            read_as_everything(&text[..at]);
        }
    }
}
