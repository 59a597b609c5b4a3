//! `risetime report`: results that were saved, shown again.

use crate::args::{Format, Report};
use crate::output::{self, Failure};
use crate::run::page;
use risetime_analysis::{RunResult, Timeline};
use risetime_lab::names;
use risetime_lab::{PhaseRuns, Saved, is_saved, read_saved, series_of};
use risetime_model::InputError;
use risetime_report::{Told, csv, json, picture, text};
use std::process::ExitCode;

/// Longest file that is read, in bytes.
const MAX: usize = 256 << 20;

/// Kind of a file, by its content.
enum Content {
    /// Runs, as `run --save-result` writes them.
    Results(Vec<Saved>),
}

impl Content {
    /// Reads a file. Errors: one that cannot be read, or holds nothing that is known.
    fn of(file: &str) -> Result<Content, InputError> {
        let text = names::text(file, MAX)?;
        match is_saved(&text) {
            true => Ok(Content::Results(read_saved(&text, file)?)),
            false => Err(InputError::new(file, "holds no results of Risetime")
                .hint("`risetime run … --save-result FILE` writes such a file")),
        }
    }
}

pub(crate) fn report(args: &Report) -> Result<ExitCode, Failure> {
    let Content::Results(saved) = Content::of(&args.file)?;
    let first = saved.first().map(|run| &run.shown);
    let about = saved.first().and_then(|run| run.experiment.as_ref());
    let view = text::View {
        about: about.map_or("", |e| e.workload.about.as_str()),
        task: first.and_then(|shown| shown.task.as_deref()),
        full: args.full,
        why: first.map_or(&[], |shown| &shown.why),
    };
    let set = first.map_or(&[][..], |shown| &shown.set);
    match saved.iter().all(|run| run.shown.series.is_some()) {
        true => series(args, &series_of(&saved), &view, set),
        false => single(args, &saved, &view, set),
    }
}

fn single(
    args: &Report,
    saved: &[Saved],
    view: &text::View<'_>,
    set: &csv::Set,
) -> Result<ExitCode, Failure> {
    let none = Timeline::default();
    let curves = |run: &'_ Saved| -> bool { run.timeline.is_some() };
    if args.plot.wanted() && !saved.iter().all(curves) {
        args.plot.refuse("the file has no curves to draw", "save the runs again")?;
    }
    let followed = saved.iter().map(|run| (&run.result, run.timeline.as_ref().unwrap_or(&none)));
    let followed: Vec<(&RunResult, &Timeline)> = followed.collect();
    args.plot.draw(|| picture::runs(&followed))?;
    let told = saved.iter().map(|run| Told { run: &run.result, listed: None });
    let mut told: Vec<Told<'_>> = told.collect();
    output::stream(|out| match args.format {
        Format::Json => json::runs(out, &mut told),
        Format::Csv => csv::runs(out, &mut told, set),
        Format::Text => {
            let style = output::style();
            let page = match followed.as_slice() {
                [(one, curves)] => text::run(one, curves, view, &style),
                _ => {
                    let results = saved.iter().map(|run| run.result.clone());
                    text::compare(&results.collect::<Vec<_>>(), view, &style)
                }
            };
            out.write_all(page.as_bytes())
        }
    })
}

fn series(
    args: &Report,
    all: &[PhaseRuns],
    view: &text::View<'_>,
    set: &csv::Set,
) -> Result<ExitCode, Failure> {
    args.plot.refuse("a picture is of one run a policy", "save a run without --phases")?;
    let columns: Vec<_> = all.iter().map(|p| (p.runs.as_slice(), &p.summary)).collect();
    let policy = |p: &PhaseRuns| p.runs.first().map_or(String::new(), |run| run.policy.clone());
    let names: Vec<String> = all.iter().map(policy).collect();
    let policies = names.iter().zip(all).map(|(name, p)| (name.as_str(), &p.summary));
    let policies: Vec<_> = policies.collect();
    let told = all.iter().flat_map(|p| &p.runs).map(|run| Told { run, listed: None });
    let mut told: Vec<Told<'_>> = told.collect();
    output::stream(|out| match args.format {
        Format::Json => json::phases(out, &mut told, &policies),
        Format::Csv => csv::runs(out, &mut told, set),
        Format::Text => out.write_all(page(args.every_phase, &columns, view).as_bytes()),
    })
}
