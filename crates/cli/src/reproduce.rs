//! `risetime reproduce`: a document's numbers beside ours.

use crate::args::Reproduce;
use crate::output::{self, Failure};
use crate::run::Bar;
use crate::shown;
use risetime_analysis::study::{Against, JudgedRow};
use risetime_lab::{Found, names};
use risetime_model::study::Wrong;
use risetime_model::{InputError, Study};
use risetime_report::{json, text};
use risetime_study::reproduce_against;
use std::process::ExitCode;

pub(crate) fn reproduce(args: &Reproduce) -> Result<ExitCode, Failure> {
    let study = chosen(args)?;
    let wrong = wrong(args)?;
    let bar = Bar::new((study.figures.len() * (1 + wrong.len())) as u64, "figures");
    let mut begun = 0;
    let mut progress = |_: &str| {
        bar.at(begun);
        begun += 1;
    };
    let done = risetime_study::reproduce(&study, args.phases, &mut progress)?;
    if !wrong.is_empty() {
        let mut all = Vec::new();
        for (name, wrong) in args.against.iter().zip(&wrong) {
            let under = reproduce_against(&study, wrong, args.phases, &mut progress)?;
            all.push(Against::of(name, &done, &under));
        }
        drop(bar);
        output::print(&match args.format.prose() {
            None => json::study_against(&done, &all),
            Some(form) => form.of(|style| text::study_against(&done, &all, style)),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    drop(bar);
    let found = Found::Reproduced(done.clone());
    shown::finish(&args.save, Vec::new(), found, &args.plot, args.format)?;
    // Fewer phases hold less, and now and then more: nothing to change the study for.
    if args.phases >= risetime_study::STUDY_PHASES {
        for row in done.stale() {
            output::note(&format!("{}: holds, though {} says why it misses", row.id, done.study));
        }
    }
    let fine = if args.strict { !done.rows().any(JudgedRow::misses) } else { done.holds() };
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The wrong policies that were asked for.
fn wrong(args: &Reproduce) -> Result<Vec<Wrong>, InputError> {
    let parse = |text: &String| {
        Wrong::parse(text).ok_or_else(|| {
            InputError::new("--against", format!("{text:?} is no policy")).hint(
                "a policy (`linux-6.8`), settings on top of each (`+pelt_half_life=28`), or both",
            )
        })
    };
    args.against.iter().map(parse).collect()
}

/// The study with only the figures that were asked for.
fn chosen(args: &Reproduce) -> Result<Study, InputError> {
    let mut study = names::study(&args.study)?;
    let known: Vec<String> = study.figures.iter().map(|f| f.id.clone()).collect();
    if let Some(unknown) = args.figure.iter().find(|f| !known.contains(f)) {
        let what = format!("{unknown:?} is no figure of {}", study.name);
        let hint = format!("it has {}", known.join(", "));
        return Err(InputError::new("--figure", what).hint(hint));
    }
    if !args.figure.is_empty() {
        study.figures.retain(|f| args.figure.contains(&f.id));
    }
    Ok(study)
}
