//! `risetime reproduce`: a document's numbers beside ours.

use crate::args::{Reproduce, TextOrJson};
use crate::output::{self, Failure};
use crate::run::Bar;
use risetime_analysis::study::JudgedRow;
use risetime_model::{InputError, Study};
use risetime_report::{json, picture, text};
use std::process::ExitCode;

pub(crate) fn reproduce(args: &Reproduce) -> Result<ExitCode, Failure> {
    let study = chosen(args)?;
    let bar = Bar::new(study.figures.len() as u64, "figures");
    let mut begun = 0;
    let done = risetime_study::reproduce(&study, args.phases, |_| {
        bar.at(begun);
        begun += 1;
    })?;
    drop(bar);
    args.plot.draw(|| picture::study(&done))?;
    output::print(&match args.format {
        TextOrJson::Json => json::study(&done),
        TextOrJson::Text => text::study(&done, &output::style()),
    })?;
    // Fewer phases hold less, and now and then more: nothing to change the study for.
    if args.phases >= risetime_study::STUDY_PHASES {
        for row in done.stale() {
            output::note(&format!("{}: holds, though {} says why it misses", row.id, done.study));
        }
    }
    let fine = if args.strict { !done.rows().any(JudgedRow::misses) } else { done.holds() };
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The study with only the figures that were asked for.
fn chosen(args: &Reproduce) -> Result<Study, InputError> {
    let mut study = risetime_lab::names::study(&args.study)?;
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
