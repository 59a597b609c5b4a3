//! What is built in: it parses, without a warning, and its list entries say what its files
//! say.

use risetime_model::{Platform, Policy, library};

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
        assert_eq!(e.name, format!("linux-{}", p.kernel), "the name says another kernel");
        for alias in e.aliases {
            assert_eq!(Policy::load(alias).as_ref(), Ok(&p));
        }
    }
    assert_eq!(Policy::load(library::DEFAULT_POLICY).map(|p| p.name).as_deref(), Ok("linux-7.2"));
}
