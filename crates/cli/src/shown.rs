//! Results as they are printed: by the command that found them, and by `risetime report` from its
//! file, both from the same records.

use crate::args::{AnyFormat, Format, Plot, Save, TextOrJson};
use crate::output::{self, Failure};
use crate::plot::NO_ENERGY;
use crate::prose::Prose;
use crate::spool::Spool;
use risetime_analysis::{PhaseSummary, RunResult, Timeline};
use risetime_lab::{Advised, BisectedBy, ComparedBy, Filed, Found, PhaseRuns, SoughtBy, Swept};
use risetime_model::{Experiment, InputError};
use risetime_report::page::Doc;
use risetime_report::{Told, csv, json, picture, text};
use std::io::Write;
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
        Format::Text | Format::Markdown | Format::Html => {
            let form = format.prose().unwrap_or(Prose::Terminal);
            let style = form.style();
            let page = match results {
                [one] => text::run(one, &timelines[0], view, &style),
                several => text::compare(several, view, &style),
            };
            let what = if view.full { "bursts and changes of CPU" } else { "bursts" };
            if form == Prose::Terminal {
                out.write_all(page.as_bytes())?;
                return lists_as_text(out, &mut told, what, &style);
            }
            let docs = lists_as_docs(&mut told, what, &style)?;
            let docs: Vec<Doc> = std::iter::once(page).chain(docs).collect();
            out.write_all(form.all(&docs).as_bytes())
        }
    })
}

/// Writes what was listed of each run, line by line, and its late jobs.
fn lists_as_text(
    out: &mut dyn Write,
    all: &mut [Told<'_>],
    what: &str,
    style: &text::Style,
) -> std::io::Result<()> {
    for told in all {
        let Some(lines) = &mut told.listed else { continue };
        writeln!(out, "\nAll {what} under {}", told.run.policy)?;
        lines.try_for_each(|line| writeln!(out, "{}", line?))?;
        let late = text::late_jobs(told.run, style);
        if !late.is_empty() {
            write!(out, "\n{late}")?;
        }
    }
    Ok(())
}

/// The reports of what was listed of each run, and of its late jobs.
fn lists_as_docs(
    all: &mut [Told<'_>],
    what: &str,
    style: &text::Style,
) -> std::io::Result<Vec<Doc>> {
    let mut docs = Vec::new();
    for told in all {
        let Some(lines) = &mut told.listed else { continue };
        let lines = lines.collect::<std::io::Result<Vec<String>>>()?;
        docs.push(text::listed(&format!("All {what} under {}", told.run.policy), lines, style));
        docs.push(text::late_jobs(told.run, style));
    }
    docs.retain(|doc| !doc.is_empty());
    Ok(docs)
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
        Format::Text | Format::Markdown | Format::Html => {
            let form = look.format.prose().unwrap_or(Prose::Terminal);
            out.write_all(page(form, every_phase, &columns, &look.view).as_bytes())
        }
    })
}

/// Returns the page of experiments that were run many times each.
fn page(
    form: Prose,
    every_phase: bool,
    columns: &[(&[RunResult], &PhaseSummary)],
    view: &text::View<'_>,
) -> String {
    let style = form.style();
    let docs = match columns {
        [(runs, summary)] => vec![text::phases(runs, summary, every_phase, view, &style)],
        several => {
            let each = several.iter().filter(|_| every_phase);
            let pages = each.map(|(runs, summary)| text::phases(runs, summary, true, view, &style));
            std::iter::once(text::compare_phases(several, view, &style)).chain(pages).collect()
        }
    };
    form.all(&docs)
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
    let prose = || has(&filed.found, format);
    match &filed.found {
        Found::Compared(ComparedBy { compared, set }) => {
            plot.draw(|| picture::compared(compared))?;
            output::stream(|out| match (format, format.prose()) {
                (AnyFormat::Csv, _) => csv::compare(out, compared, set),
                (AnyFormat::Mail, _) => out.write_all(text::mail(compared).as_bytes()),
                (_, None) => out.write_all(json::compare(compared).as_bytes()),
                (_, Some(form)) => {
                    out.write_all(form.of(|style| text::compared(compared, style)).as_bytes())
                }
            })
        }
        Found::Swept(Swept { sweep, set }) => {
            let format = Format::of(format, filed.found.kind())?;
            plot.draw(|| picture::sweep(sweep))?;
            output::stream(|out| match (format, format.prose()) {
                (Format::Csv, _) => csv::sweep(out, sweep, set),
                (_, None) => out.write_all(json::sweep(sweep, set).as_bytes()),
                (_, Some(form)) => {
                    out.write_all(form.of(|style| text::sweep(sweep, style)).as_bytes())
                }
            })
        }
        Found::Explained(all) => {
            let prose = prose()?;
            plot.draw(|| picture::causes(all))?;
            output::print(&match prose {
                None => json::explain(all),
                Some(form) => form.of(|style| text::explain(all, style)),
            })
        }
        Found::Advised(advised) => {
            let (prose, Advised { advice, command, real }) = (prose()?, &**advised);
            if !filed.experiments.iter().all(knows_power) {
                plot.refuse_as(NO_ENERGY)?;
            }
            plot.draw(|| picture::advice(advice))?;
            output::print(&match prose {
                None => json::advice(advice, command, real.as_ref()),
                Some(form) => form.of(|style| text::advice(advice, command, real.as_ref(), style)),
            })
        }
        Found::Sought(sought) => {
            let (prose, SoughtBy { sought, command }) = (prose()?, &**sought);
            no_picture(plot, &filed.found)?;
            output::print(&match prose {
                None => json::goal(sought, command),
                Some(form) => form.of(|style| text::goal(sought, command, style)),
            })
        }
        Found::History(history) => {
            let prose = prose()?;
            plot.draw(|| picture::history(history))?;
            output::print(&match prose {
                None => json::history(history),
                Some(form) => form.of(|style| text::history(history, style)),
            })
        }
        Found::Bisected(BisectedBy { figure, phases, side, releases, found, between }) => {
            let prose = prose()?;
            no_picture(plot, &filed.found)?;
            output::print(&match prose {
                None => json::bisected(figure, *side, releases, found, between),
                Some(form) => {
                    let figure = (figure.as_str(), *phases);
                    form.of(|style| text::bisected(figure, *side, releases, found, between, style))
                }
            })
        }
        Found::Reproduced(study) => {
            let prose = prose()?;
            plot.draw(|| picture::study(study))?;
            output::print(&match prose {
                None => json::study(study),
                Some(form) => form.of(|style| text::study(study, style)),
            })
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

/// The form of a result that is JSON or a report for a person; `None`: JSON.
///
/// Errors: another format is meant.
fn has(found: &Found, format: AnyFormat) -> Result<Option<Prose>, InputError> {
    match (format, format.prose()) {
        (AnyFormat::Csv | AnyFormat::Mail, _) => {
            Err(no_format(format, found.kind(), "text, json, markdown and html"))
        }
        (_, form) => Ok(form),
    }
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
            AnyFormat::Markdown => Ok(Format::Markdown),
            AnyFormat::Html => Ok(Format::Html),
            AnyFormat::Mail => Err(no_format(format, of, "text, json, csv, markdown and html")),
        }
    }
}

impl From<Format> for AnyFormat {
    fn from(format: Format) -> AnyFormat {
        match format {
            Format::Text => AnyFormat::Text,
            Format::Json => AnyFormat::Json,
            Format::Csv => AnyFormat::Csv,
            Format::Markdown => AnyFormat::Markdown,
            Format::Html => AnyFormat::Html,
        }
    }
}

impl From<TextOrJson> for AnyFormat {
    fn from(format: TextOrJson) -> AnyFormat {
        match format {
            TextOrJson::Text => AnyFormat::Text,
            TextOrJson::Json => AnyFormat::Json,
            TextOrJson::Markdown => AnyFormat::Markdown,
            TextOrJson::Html => AnyFormat::Html,
        }
    }
}
