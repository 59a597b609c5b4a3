//! What is built in: it parses, without a warning, and its list entries say what its files
//! say.

use risetime_kernel::units::Span;
use risetime_model::workload::{Attr, Event, Phase, Repeat, StartAt, TaskSpec};
use risetime_model::{Platform, Policy, Study, Workload, library};

#[test]
fn every_built_in_platform_parses_without_an_unknown_warning() {
    for e in library::platforms() {
        let p = Platform::load(e.name).unwrap_or_else(|err| panic!("{err}"));
        assert_eq!((p.name.as_str(), p.about.as_str()), (e.name, e.about().as_str()));
        assert!(!e.about().is_empty());
        // Some have OPPs that the energy model rejects, some have no energy model: sourced, both.
        let known = |w: &String| match e.name {
            _ if p.scaling_driver().is_some() && w.contains("never held to such hardware") => true,
            "pixel6" => w.contains("400000 kHz inefficient"),
            "pixel8" => w.contains("324000 kHz inefficient"),
            "hikey620" | "hikey620-uncooled" => w.contains("208000 kHz inefficient"),
            "odroid-xu4" => w.contains("kHz inefficient"),
            "exynos5800" | "server64" | "lunar-lake" | "mt8195" => w.contains("no power"),
            "intel-hybrid" | "power-2061" | "server256" | "ryzen-8840u" | "steam-deck" => {
                w.contains("no power") || w.contains("several threads")
            }
            // The driver tells no latency.
            "sc8280xp" | "sm8550" => w.contains("no power") || w.contains("latency_ns is 0"),
            _ => false,
        };
        let unknown: Vec<String> = p.warnings().into_iter().filter(|w| !known(w)).collect();
        assert_eq!(unknown, Vec::<String>::new(), "{}", e.name);
        for p in [p.clone(), p.with_hz(999)] {
            let again =
                Platform::parse(&p.to_toml(), "written").unwrap_or_else(|err| panic!("{err}"));
            assert_eq!(again, p, "{} does not survive writing and reading", p.name);
        }
    }
}

#[test]
fn every_built_in_study_parses_and_keeps_the_published_digits() {
    for e in library::studies() {
        let s = Study::load(e.name).unwrap_or_else(|err| panic!("{err}"));
        assert_eq!((s.name.as_str(), s.about.as_str()), (e.name, e.about().as_str()));
        assert!(!e.about().is_empty() && !s.source.is_empty() && !s.is_empty());
    }
    let s = Study::load("rfc-2024").unwrap_or_else(|err| panic!("{err}"));
    assert!(s.len() >= 270, "{} rows", s.len());
    let figure = s.figures.iter().find(|f| f.id == "default").expect("is there");
    let row = |quantity: &str, at: &str| {
        let lists = figure.lists.iter().filter(|l| l.quantity.as_str() == quantity);
        let mut rows = lists.flat_map(|l| &l.rows);
        let row = rows.find(|r| r.at.to_string() == at).expect("a row");
        (row.published.to_string(), row.published.last_digit())
    };
    assert_eq!(row("time_on_cpu", "0"), ("90.39".to_string(), 0.1f64.powi(2)));
    assert_eq!(row("util_residency", "36"), ("8.0".to_string(), 0.1));
    assert_eq!(row("reach_util", "1000"), ("284".to_string(), 1.0));
    // A list of residencies is a curve, too: 5.5 ms at 0, 7.9 at 15.
    assert_eq!(row("reach_util", "36"), ("13.4".to_string(), 0.1));
}

#[test]
fn every_built_in_policy_parses_and_answers_to_its_aliases() {
    for e in library::policies() {
        let p = Policy::load(e.name).unwrap_or_else(|err| panic!("{err}"));
        assert_eq!((p.name.as_str(), p.about.as_str()), (e.name, e.about().as_str()));
        assert!(!e.about().is_empty());
        // What follows a second dash (`linux-4.4-walt`) says which variant of that kernel.
        if let Some(name) = e.name.strip_prefix("linux-") {
            let kernel = match name {
                // As posted for 4.5, with hooks in the form of 4.6.
                "4.5-schedutil-rfc" => "4.6",
                _ => name.split('-').next().unwrap_or_default(),
            };
            assert_eq!(p.kernel.to_string(), kernel, "{}: another kernel", e.name);
        }
        for alias in e.aliases {
            assert_eq!(Policy::load(alias).as_ref(), Ok(&p));
        }
    }
    assert_eq!(Policy::load(library::DEFAULT_POLICY).map(|p| p.name).as_deref(), Ok("linux-7.2"));
}

#[test]
fn every_built_in_workload_parses_and_fits_every_platform() {
    for e in library::workloads() {
        let w = Workload::load(e.name).unwrap_or_else(|err| panic!("{err}"));
        assert_eq!((w.name.as_str(), w.about.as_str()), (e.name, e.about().as_str()));
        assert!(!e.about().is_empty());
        assert_eq!(w.without_effect, Vec::<String>::new());
        for p in library::platforms() {
            let p = Platform::load(p.name).unwrap_or_else(|err| panic!("{err}"));
            assert_eq!(w.bind(&p).as_ref(), Ok(&w), "no calibration: nothing to rescale");
        }
    }
}

#[test]
fn the_phone_and_the_server_have_as_many_tasks_as_they_say() {
    let of = |name| Workload::load(name).unwrap_or_else(|err| panic!("{err}"));
    assert_eq!((of("phone").tasks.len(), of("server").tasks.len()), (60, 2000));
    let compile = of("compile");
    let forked: Vec<&str> = compile.forked.iter().map(|t| t.comm.as_str()).collect();
    assert_eq!((compile.tasks.len(), forked), (1, vec!["cc-small", "cc-large", "cc-medium"]));
}

#[test]
fn rampup_is_a_hundred_naps_and_then_busy_to_the_end() {
    let w = Workload::load("rampup").unwrap_or_else(|err| panic!("{err}"));
    let ms = Span::from_ms;
    let us = Span::from_us;
    let phase = |name: &str, repeat, events| Phase {
        name: name.into(),
        repeat,
        events,
        attr: Attr::default(),
    };
    let nap = vec![Event::Run(us(1)), Event::Sleep(ms(10))];
    assert_eq!(
        w.tasks,
        [TaskSpec {
            logs: false,
            stage: Default::default(),
            comm: "rampup".into(),
            delay: ms(0),
            repeat: Repeat::Times(1),
            phases: vec![
                phase("nap", Repeat::Times(100), nap),
                phase("busy", Repeat::Forever, vec![Event::Run(ms(1000))]),
            ],
            attr: Attr::default(),
        }]
    );
    assert_eq!(w.start_at, StartAt::Phase(1));
    assert_eq!((w.duration, w.calibration), (None, None));
}
