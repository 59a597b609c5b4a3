//! Whether a figure's rows tell its policies from wrong ones.

use super::{reproduce, reproduce_against};
use risetime_analysis::study::{Against, Score};
use risetime_model::Study;
use risetime_model::study::Wrong;
use risetime_trace::RunError;

/// A figure's counts under its own policies, and how many of its rows hold under each wrong one.
#[derive(Clone, Debug, PartialEq)]
pub struct ToldApart {
    /// Short name of the figure.
    pub figure: String,
    /// Counts under its own policies.
    pub score: Score,
    /// The wrong policies that the study names for it, with the counted rows that hold under each.
    pub wrong: Vec<(String, usize)>,
}

impl ToldApart {
    /// The fewest rows that hold under a wrong policy; `None`: the study names none.
    pub fn fewest(&self) -> Option<usize> {
        self.wrong.iter().map(|(_, holds)| *holds).min()
    }
}

/// Runs the figure called `id` of `study` from `phases` start phases, under its own policies and
/// under each wrong one.
///
/// Errors: those of [`reproduce`].
pub fn told_apart(study: &Study, id: &str, phases: u32) -> Result<ToldApart, RunError> {
    let mut alone = study.clone();
    alone.figures.retain(|figure| figure.id == id);
    let right = reproduce(&alone, phases, |_| ())?;
    let names = alone.figures.iter().flat_map(|figure| figure.wrong.clone());
    let mut wrong = Vec::new();
    for (name, policy) in names.filter_map(|name| Wrong::parse(&name).map(|wrong| (name, wrong))) {
        let under = reproduce_against(&alone, &policy, phases, |_| ())?;
        let (_, holds) = Against::of(&name, &right, &under).total();
        wrong.push((name, holds));
    }
    Ok(ToldApart { figure: id.to_string(), score: right.score(), wrong })
}
