//! Results as they are printed: by the command that found them, and by `risetime report` from its
//! file, both from the same records.

use crate::args::{AnyFormat, Format, Plot, Save, TextOrJson};
use crate::output::{self, Failure};
use crate::plot::NO_ENERGY;
use crate::spool::Spool;
use risetime_analysis::{PhaseSummary, RunResult, Timeline};
use risetime_lab::{Advised, BisectedBy, ComparedBy, Filed, Found, PhaseRuns, SoughtBy, Swept};
use risetime_model::{Experiment, InputError};
use risetime_report::{Told, csv, json, picture, text};
use std::process::ExitCode;

/// Choices by which runs are shown.
pub(crate) struct Look<'a> {
    pub(crate) view: text::View<'a>,
    /// Settings that were asked for beside the policy's.
    pub(crate) set: &'a csv::Set,
    pub(crate) plot: &'a Plot,
    pub(crate) format: Format,
}

/// Prints one run a policy, with what was listed of each.
pub(crate) fn runs(
    look: &Look<'_>,
    results: &[RunResult],
    timelines: &[Timeline],
    lists: Vec<Option<Spool>>,
) -> Result<ExitCode, Failure> {
    let Look { view, set, plot, format } = look;
    plot.draw(|| picture::runs(&results.iter().zip(timelines).collect::<Vec<_>>()))?;
    let mut told = Vec::new();
    for (run, list) in results.iter().zip(lists) {
        let lines = list.map(Spool::lines).transpose()?;
        told.push(Told { run, listed: lines.map(|lines| Box::new(lines) as _) });
    }
    output::stream(|out| match format {
        Format::Json => json::runs(out, &mut told),
        Format::Csv => csv::runs(out, &mut told, set),
        Format::Text => {
            let page = match results {
                [one] => text::run(one, &timelines[0], view, &output::style()),
                several => text::compare(several, view, &output::style()),
            };
            out.write_all(page.as_bytes())?;
            for told in &mut told {
                if let Some(lines) = &mut told.listed {
                    let what = if view.full { "bursts and changes of CPU" } else { "bursts" };
                    writeln!(out, "\nAll {what} under {}", told.run.policy)?;
                    lines.try_for_each(|line| writeln!(out, "{}", line?))?;
                    let late = text::late_jobs(told.run, &output::style());
                    if !late.is_empty() {
                        write!(out, "\n{late}")?;
                    }
                }
            }
            Ok(())
        }
    })
}

/// Prints runs of series, each with its summary.
pub(crate) fn series(
    look: &Look<'_>,
    every_phase: bool,
    all: &[PhaseRuns],
) -> Result<ExitCode, Failure> {
    let columns: Vec<_> = all.iter().map(|p| (p.runs.as_slice(), &p.summary)).collect();
    let policy = |p: &PhaseRuns| p.runs.first().map_or(String::new(), |run| run.policy.clone());
    let names: Vec<String> = all.iter().map(policy).collect();
    let policies = names.iter().zip(all).map(|(name, p)| (name.as_str(), &p.summary));
    let policies: Vec<_> = policies.collect();
    let told = all.iter().flat_map(|p| &p.runs).map(|run| Told { run, listed: None });
    let mut told: Vec<Told<'_>> = told.collect();
    output::stream(|out| match look.format {
        Format::Json => json::phases(out, &mut told, &policies),
        Format::Csv => csv::runs(out, &mut told, look.set),
        Format::Text => out.write_all(page(every_phase, &columns, &look.view).as_bytes()),
    })
}

/// Returns the page of experiments that were run many times each.
fn page(
    every_phase: bool,
    columns: &[(&[RunResult], &PhaseSummary)],
    view: &text::View<'_>,
) -> String {
    let style = output::style();
    let each = || columns.iter().map(|(runs, summary)| (runs, summary));
    match columns {
        [(runs, summary)] => text::phases(runs, summary, every_phase, view, &style),
        several if !every_phase => text::compare_phases(several, view, &style),
        several => {
            let pages =
                each().map(|(runs, summary)| text::phases(runs, summary, true, view, &style));
            text::compare_phases(several, view, &style) + &pages.collect::<String>()
        }
    }
}

/// Saves what a command found, where that was asked for, then draws and prints it. `experiments`
/// are those that were asked for.
pub(crate) fn finish(
    save: &Save,
    experiments: Vec<Experiment>,
    found: Found,
    plot: &Plot,
    format: impl Into<AnyFormat>,
) -> Result<ExitCode, Failure> {
    let filed = Filed { experiments, found };
    if let Some(path) = &save.save_result {
        output::write_file(path, (filed.to_json()? + "\n").as_bytes())?;
    }
    show(&filed, plot, format.into())
}

/// Draws and prints what a command found.
///
/// Errors: a format or a picture that there is not of such a result.
pub(crate) fn show(filed: &Filed, plot: &Plot, format: AnyFormat) -> Result<ExitCode, Failure> {
    let style = output::style();
    let data = || has(&filed.found, format);
    match &filed.found {
        Found::Compared(ComparedBy { compared, set }) => {
            plot.draw(|| picture::compared(compared))?;
            output::stream(|out| match format {
                AnyFormat::Json => out.write_all(json::compare(compared).as_bytes()),
                AnyFormat::Csv => csv::compare(out, compared, set),
                AnyFormat::Mail => out.write_all(text::mail(compared).as_bytes()),
                AnyFormat::Text => out.write_all(text::compared(compared, &style).as_bytes()),
            })
        }
        Found::Swept(Swept { sweep, set }) => {
            let format = Format::of(format, filed.found.kind())?;
            plot.draw(|| picture::sweep(sweep))?;
            output::stream(|out| match format {
                Format::Text => out.write_all(text::sweep(sweep, &style).as_bytes()),
                Format::Json => out.write_all(json::sweep(sweep, set).as_bytes()),
                Format::Csv => csv::sweep(out, sweep, set),
            })
        }
        Found::Explained(all) => {
            let json = data()?;
            plot.draw(|| picture::causes(all))?;
            output::print(&if json { json::explain(all) } else { text::explain(all, &style) })
        }
        Found::Advised(advised) => {
            let (json, Advised { advice, command, real }) = (data()?, &**advised);
            if !filed.experiments.iter().all(knows_power) {
                plot.refuse_as(NO_ENERGY)?;
            }
            plot.draw(|| picture::advice(advice))?;
            output::print(&match json {
                true => json::advice(advice, command, real.as_ref()),
                false => text::advice(advice, command, real.as_ref(), &style),
            })
        }
        Found::Sought(sought) => {
            let (json, SoughtBy { sought, command }) = (data()?, &**sought);
            no_picture(plot, &filed.found)?;
            output::print(&match json {
                true => json::goal(sought, command),
                false => text::goal(sought, command, &style),
            })
        }
        Found::History(history) => {
            let json = data()?;
            plot.draw(|| picture::history(history))?;
            output::print(&match json {
                true => json::history(history),
                false => text::history(history, &style),
            })
        }
        Found::Bisected(BisectedBy { figure, phases, side, releases, found, between }) => {
            let json = data()?;
            no_picture(plot, &filed.found)?;
            output::print(&match json {
                true => json::bisected(figure, *side, releases, found, between),
                false => {
                    let figure = (figure.as_str(), *phases);
                    text::bisected(figure, *side, releases, found, between, &style)
                }
            })
        }
        Found::Reproduced(study) => {
            let json = data()?;
            plot.draw(|| picture::study(study))?;
            output::print(&if json { json::study(study) } else { text::study(study, &style) })
        }
    }
}

/// Whether the power of all CPUs is known.
pub(crate) fn knows_power(e: &Experiment) -> bool {
    e.platform.domains.iter().all(|d| d.busy_power(d.freq_max()).is_some())
}

fn no_picture(plot: &Plot, found: &Found) -> Result<(), Failure> {
    plot.refuse(&format!("there is no picture of the result of `{}`", found.kind()), "leave it out")
}

/// Whether JSON is meant, of a result that is JSON or text.
///
/// Errors: another format is.
fn has(found: &Found, format: AnyFormat) -> Result<bool, InputError> {
    Ok(TextOrJson::of(format, found.kind())? == TextOrJson::Json)
}

/// The fault of a format that the result of the command `of` has not.
fn no_format(format: AnyFormat, of: &str, has: &str) -> InputError {
    let name = clap::ValueEnum::to_possible_value(&format);
    let name = name.map_or(String::new(), |name| name.get_name().to_string());
    InputError::new("--format", format!("the result of `{of}` has no `{name}`"))
        .hint(format!("it has {has}"))
}

impl Format {
    /// The format of a result of the command `of`, which has no mail.
    ///
    /// Errors: a mail is asked for.
    pub(crate) fn of(format: AnyFormat, of: &str) -> Result<Format, InputError> {
        match format {
            AnyFormat::Text => Ok(Format::Text),
            AnyFormat::Json => Ok(Format::Json),
            AnyFormat::Csv => Ok(Format::Csv),
            AnyFormat::Mail => Err(no_format(format, of, "text, json and csv")),
        }
    }
}

impl TextOrJson {
    /// The format of a result of the command `of`, which is text or JSON.
    ///
    /// Errors: another is asked for.
    fn of(format: AnyFormat, of: &str) -> Result<TextOrJson, InputError> {
        match format {
            AnyFormat::Text => Ok(TextOrJson::Text),
            AnyFormat::Json => Ok(TextOrJson::Json),
            AnyFormat::Csv | AnyFormat::Mail => Err(no_format(format, of, "text and json")),
        }
    }
}

impl From<Format> for AnyFormat {
    fn from(format: Format) -> AnyFormat {
        match format {
            Format::Text => AnyFormat::Text,
            Format::Json => AnyFormat::Json,
            Format::Csv => AnyFormat::Csv,
        }
    }
}

impl From<TextOrJson> for AnyFormat {
    fn from(format: TextOrJson) -> AnyFormat {
        match format {
            TextOrJson::Text => AnyFormat::Text,
            TextOrJson::Json => AnyFormat::Json,
        }
    }
}
