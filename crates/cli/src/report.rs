//! `risetime report`: what happened in a trace; results that were saved, shown again.

use crate::args::{Format, Report};
use crate::output::Failure;
use crate::shown::{self, Look};
use crate::spool::{Spool, is_printed};
use crate::trace;
use risetime_analysis::{RunResult, Timeline};
use risetime_lab::names;
use risetime_lab::{Contents, Listing, Saved, is_saved, read_saved, series_of};
use risetime_model::InputError;
use risetime_report::text;
use std::process::ExitCode;

/// Longest file that is read, in bytes.
const MAX: usize = 256 << 20;

/// Reads a file of results.
///
/// Errors: one that cannot be read, or holds nothing that is known.
fn contents(file: &str) -> Result<Contents, InputError> {
    let text = names::text(file, MAX)?;
    match is_saved(&text) {
        true => read_saved(&text, file),
        false => Err(InputError::new(
            file,
            "is no trace that is known, and holds no results of Risetime",
        )
        .hint(format!(
            "traces: {}; a command with --save-result FILE writes results",
            trace::formats()
        ))),
    }
}

pub(crate) fn report(args: &Report) -> Result<ExitCode, Failure> {
    if let Some(source) = trace::told(&args.file) {
        return trace::report(args, &source);
    }
    let job = args.job.as_ref().map(|_| "--job");
    if let Some(name) = args.of_trace.given().chain(job).next() {
        let what = format!("is for traces, and {} is none", args.file);
        return Err(InputError::new(name, what).hint("leave it out").into());
    }
    match contents(&args.file)? {
        Contents::Filed(filed) => {
            let of_runs =
                [("full", args.full), ("bursts", args.bursts), ("every-phase", args.every_phase)];
            if let Some((name, _)) = of_runs.into_iter().find(|(_, given)| *given) {
                let what = format!("the file holds the result of `{}`", filed.found.kind());
                let e = InputError::new(format!("--{name}"), what);
                return Err(e.hint("it is for results of `run`").into());
            }
            shown::show(&filed, &args.plot, args.format)
        }
        Contents::Runs(saved) => runs(args, saved),
    }
}

fn runs(args: &Report, saved: Vec<Saved>) -> Result<ExitCode, Failure> {
    let format = Format::of(args.format, "run")?;
    let shown = saved.first().map(|run| run.shown.clone()).unwrap_or_default();
    let experiment = saved.first().and_then(|run| run.experiment.clone());
    let view = text::View {
        about: experiment.as_ref().map_or("", |e| e.workload.about.as_str()),
        task: shown.task.as_deref(),
        full: args.full,
        why: &shown.why,
    };
    let look = Look { view, set: &shown.set, plot: &args.plot, format };
    if saved.iter().all(|run| run.shown.series.is_some()) {
        args.plot.refuse("a picture is of one run a policy", "save a run without --phases")?;
        return shown::series(&look, args.every_phase, &series_of(&saved));
    }
    if !saved.iter().all(|run| run.timeline.is_some()) {
        args.plot.refuse("the file has no curves to draw", "save the runs again")?;
    }
    let lists = is_printed(args.bursts, args.full, format);
    let lists =
        saved.iter().map(|run| lists.then(|| spooled(args, format, &run.lists)).transpose());
    let lists = lists.collect::<Result<Vec<_>, _>>()?;
    let (results, timelines): (Vec<RunResult>, Vec<Timeline>) =
        saved.into_iter().map(|run| (run.result, run.timeline.unwrap_or_default())).unzip();
    shown::runs(&look, &results, &timelines, lists)
}

/// Returns the lists of a run in the format asked for.
///
/// Errors: they were not saved.
fn spooled(args: &Report, format: Format, lists: &Option<Listing>) -> Result<Spool, Failure> {
    let Some(lists) = lists else {
        let option = if args.bursts { "--bursts" } else { "--full" };
        let hint = "save the runs again, with --bursts or --full";
        let e = InputError::new(option, format!("{} has no list of bursts", args.file));
        return Err(e.hint(hint).into());
    };
    let mut spool = Spool::new(format, args.full)?;
    lists.replay(&mut spool);
    Ok(spool)
}
