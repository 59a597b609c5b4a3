//! What is built in: it parses, without a warning, and its list entries say what its files
//! say.

use risetime_kernel::units::Span;
use risetime_model::workload::{Attr, Event, Phase, Repeat, StartAt, TaskSpec};
use risetime_model::{Platform, Policy, Workload, library};

#[test]
fn every_built_in_platform_parses_without_a_warning() {
    for e in library::platforms() {
        let p = Platform::load(e.name).unwrap_or_else(|err| panic!("{err}"));
        assert_eq!((p.name.as_str(), p.about.as_str()), (e.name, e.about.as_str()));
        assert!(!e.about.is_empty());
        assert_eq!(p.warnings(), Vec::<String>::new(), "{}", e.name);
        let again = Platform::parse(&p.to_toml(), "written").unwrap_or_else(|err| panic!("{err}"));
        assert_eq!(again, p, "{} does not survive writing and reading", e.name);
    }
}

#[test]
fn every_built_in_policy_parses_and_answers_to_its_aliases() {
    for e in library::policies() {
        let p = Policy::load(e.name).unwrap_or_else(|err| panic!("{err}"));
        assert_eq!((p.name.as_str(), p.about.as_str()), (e.name, e.about.as_str()));
        assert!(!e.about.is_empty());
        if e.name.starts_with("linux-") {
            assert_eq!(e.name, format!("linux-{}", p.kernel), "the name says another kernel");
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
        assert_eq!((w.name.as_str(), w.about.as_str()), (e.name, e.about.as_str()));
        assert!(!e.about.is_empty());
        assert_eq!(w.without_effect, Vec::<String>::new());
        for p in library::platforms() {
            let p = Platform::load(p.name).unwrap_or_else(|err| panic!("{err}"));
            assert_eq!(w.bind(&p).as_ref(), Ok(&w), "no calibration: nothing to rescale");
        }
    }
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
