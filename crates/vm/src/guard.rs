//! A run gives the same bytes every time; where a host does not keep to that, it is noticed.
//!
//! ```text
//! key          of everything that goes into a run: QEMU, kernel, device tree, initramfs (agent,
//!              modules, job), arguments
//! fingerprint  of the answer that came out, kept in the cache
//! known        the answer must have it; if not, the run is repeated, and what two of three runs
//!              agree on is the answer (and the fingerprint, if the first was the odd one)
//! ```
//!
//! One boot in some forty was seen to take another course on a busy host. The first run of its
//! kind has nothing to be compared with: if that is the odd one, the next run finds out.

use risetime_job::answer::{FNV_START, fnv};
use risetime_model::output::whole;
use std::fs;
use std::path::{Path, PathBuf};

/// Number of times that a run is tried until two agree.
const TRIES: usize = 3;

/// The fingerprint file of one kind of run.
#[derive(Debug)]
pub(crate) struct Guard(Option<PathBuf>);

/// An answer, and whether it can be relied on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Guarded {
    pub(crate) answer: Vec<u8>,
    /// Note for the reader.
    pub(crate) note: Option<String>,
}

impl Guard {
    /// A guard for runs made of `parts`, remembered in `dir`; `None`: nothing is remembered.
    pub(crate) fn new(dir: Option<&Path>, parts: &[impl AsRef<[u8]>]) -> Guard {
        Guard(dir.map(|d| d.join(key(parts))))
    }

    /// An answer of `run` that agrees with what is known, or on which two runs agree.
    ///
    /// Errors: those of `run`.
    pub(crate) fn check<E>(
        &self,
        mut run: impl FnMut() -> Result<Vec<u8>, E>,
    ) -> Result<Guarded, E> {
        let mut seen: Vec<u64> = self.known().into_iter().collect();
        let first_time = seen.is_empty();
        for tries in 1.. {
            let answer = run()?;
            let print = fnv(FNV_START, &answer);
            let agrees = seen.contains(&print);
            if first_time || agrees || tries == TRIES {
                self.remember(print);
                let odd = !first_time && !agrees;
                let note = odd.then(|| format!("{TRIES} runs gave {TRIES} different traces: this host does not repeat a run exactly"));
                return Ok(Guarded { answer, note });
            }
            seen.push(print);
        }
        unreachable!("the last try returns")
    }

    fn known(&self) -> Option<u64> {
        u64::from_str_radix(fs::read_to_string(self.0.as_ref()?).ok()?.trim(), 16).ok()
    }

    fn remember(&self, print: u64) {
        if let Some(file) = &self.0 {
            // Without a memory a run is still a run.
            let _ = file.parent().map(fs::create_dir_all);
            let _ = whole(file, None, |e| e, |out| writeln!(out, "{print:016x}"));
        }
    }
}

/// A name for `parts`.
pub(crate) fn key(parts: &[impl AsRef<[u8]>]) -> String {
    // The lengths keep two parts from being taken for one.
    let add = |h, p: &[u8]| fnv(fnv(h, &p.len().to_le_bytes()), p);
    format!("{:016x}", parts.iter().fold(FNV_START, |h, p| add(h, p.as_ref())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks these answers one after the other; returns the answer, whether there is a note, and
    /// how many runs were asked for.
    fn check(guard: &Guard, answers: &[&str]) -> (String, bool, usize) {
        let mut asked = 0;
        let done = guard.check(|| {
            asked += 1;
            Ok::<_, ()>(answers[asked - 1].as_bytes().to_vec())
        });
        let done = done.unwrap();
        (String::from_utf8(done.answer).unwrap(), done.note.is_some(), asked)
    }

    #[test]
    fn two_of_three_runs_decide() {
        let dir = std::env::temp_dir().join(format!("risetime-guard-{}", std::process::id()));
        let guard = Guard::new(Some(&dir), &["a", "b"]);
        let result = |text: &str, note, asked| (text.to_string(), note, asked);
        assert_eq!(check(&guard, &["x"]), result("x", false, 1), "nothing is known yet");
        assert_eq!(check(&guard, &["x"]), result("x", false, 1));
        assert_eq!(check(&guard, &["odd", "x"]), result("x", false, 2));
        assert_eq!(check(&guard, &["y", "y"]), result("y", false, 2), "what was known was odd");
        assert_eq!(check(&guard, &["y"]), result("y", false, 1));
        assert_eq!(check(&guard, &["1", "2", "3"]), result("3", true, 3));
        let other = Guard::new(Some(&dir), &["ab", ""]);
        assert_eq!(check(&other, &["z"]), result("z", false, 1), "another kind of run");
        std::fs::remove_dir_all(dir).unwrap();
        assert_eq!(check(&Guard::new(None, &[""]), &["x"]), result("x", false, 1));
    }

    #[test]
    fn a_run_that_fails_is_not_repeated() {
        let mut asked = 0;
        let done = Guard::new(None, &[""]).check(|| {
            asked += 1;
            Err("no")
        });
        assert_eq!((done, asked), (Err("no"), 1));
    }
}
