//! How every property of the workspace draws its cases: the same ones in each run.
//!
//! ```text
//! cargo test                                    the cases of seed 1, as many as the property asks for
//! PROPTEST_CASES=100000 cargo test …            that many of the same seed
//! PROPTEST_RNG_SEED=random cargo test …         of a fresh seed
//! PROPTEST_RNG_SEED=N cargo test …              of that seed
//! ```
//!
//! A test that draws anew in each run fails now and then on what nobody has changed. What a fresh seed
//! finds is mended, and stays as a test with a name; that is why no file of failures is kept.
//!
//! Every crate includes this file by its path, as `mod draws`.

#![allow(clippy::disallowed_methods, reason = "what may read no environment is not its tests")]

use proptest::test_runner::{Config, RngSeed};
use std::hash::{BuildHasher, RandomState};

const SEED: &str = "PROPTEST_RNG_SEED";
const CASES: &str = "PROPTEST_CASES";

/// For a property that looks at so many `cases` unless told otherwise. Says how to draw the same ones
/// again; the test harness shows it where the property fails.
pub(crate) fn config(cases: u32) -> Config {
    let seed = match std::env::var(SEED) {
        Err(_) => 1,
        // A number that is none is left to proptest, which complains, and takes this one.
        Ok(asked) if asked == "random" => RandomState::new().hash_one(SEED),
        Ok(asked) => asked.parse().unwrap_or(1),
    };
    let cases = std::env::var(CASES).ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    let thread = std::thread::current();
    let (package, test) = (env!("CARGO_PKG_NAME"), thread.name().unwrap_or_default());
    eprintln!("the same again: {SEED}={seed} {CASES}={cases} cargo test -p {package} -- {test}");
    Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() }
}
