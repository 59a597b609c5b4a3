//! Choice of the task that a reader is told of first, where no job says so: that of most work, or
//! one that was asked for.

use crate::latency::group_name;
use std::collections::HashMap;

/// The place of the first one of those of a name that did most work together; `about`: among those that are called so, and if
/// it is a task's own name that one. The first of several; 0: there is none.
pub(crate) fn of_most_work<'t>(
    tasks: impl Iterator<Item = (&'t str, u128)>,
    about: Option<&str>,
) -> usize {
    let mut names: HashMap<&str, usize> = HashMap::new();
    // The first task of a name, and the work.
    let mut all: Vec<(usize, u128)> = Vec::new();
    for (index, (comm, work)) in tasks.enumerate() {
        if about.is_some_and(|about| !is_called(comm, about)) {
            continue;
        }
        let name = if about == Some(comm) { comm } else { group_name(comm) };
        let at = *names.entry(name).or_insert(all.len());
        match all.get_mut(at) {
            Some((_, sum)) => *sum += work,
            None => all.push((index, work)),
        }
    }
    let most = all.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best });
    most.map_or(0, |(index, _)| index)
}

/// Whether a task's name, or the one that it shares with its like, is `about` or fits it as a pattern.
pub fn is_called(comm: &str, about: &str) -> bool {
    [comm, group_name(comm)].into_iter().any(|name| fits(name.as_bytes(), about.as_bytes()))
}

/// Whether a name fits a pattern, in which `*` stands for any text and `?` for a character.
fn fits(name: &[u8], pattern: &[u8]) -> bool {
    match (pattern, name) {
        ([], name) => name.is_empty(),
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skip| fits(&name[skip..], rest)),
        ([b'?', rest @ ..], [_, name @ ..]) => fits(name, rest),
        ([c, rest @ ..], [own, name @ ..]) if c == own => fits(name, rest),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_work_is_that_of_a_name() {
        let tasks = [("ui", 5), ("w-0", 3), ("x", 5), ("w-1", 3)];
        let lead = |about| of_most_work(tasks.into_iter(), about);
        assert_eq!(lead(None), 1, "w-0 and w-1 have 6");
        assert_eq!([Some("ui"), Some("w"), Some("w-1"), Some("?")].map(lead), [0, 1, 3, 1]);
        assert_eq!(of_most_work(tasks[..1].iter().copied().chain([("x", 5)]), None), 0);
        assert_eq!(of_most_work(std::iter::empty(), None), 0);
    }

    #[test]
    fn patterns_fit_names_and_those_of_instances() {
        for (name, pattern, fit) in [
            ("w-12", "w", true),
            ("w-12", "w-12", true),
            ("w-12", "w-1", false),
            ("w-12", "*2", true),
            ("render", "r*d?r", true),
            ("render", "r*d?", false),
            ("", "*", true),
            ("a", "", false),
        ] {
            assert_eq!(is_called(name, pattern), fit, "{name} {pattern}");
        }
    }
}
