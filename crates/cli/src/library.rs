//! `risetime list`, `show`, `check`: what there is, and whether a file is all right.

use crate::args::rtapp::Reading;
use crate::args::{Check, OF_A_MACHINE, Show, What};
use crate::output::{self, Failure};
use risetime_lab::Request;
use risetime_lab::names::{self, Noun};
use risetime_model::library::{self, Entry};
use risetime_model::{InputError, Platform, Workload};
use risetime_report::text;
use risetime_trace::RunError;
use std::process::ExitCode;

pub(crate) fn list(what: Option<What>) -> Result<ExitCode, Failure> {
    const ALL: [What; 11] = [
        What::Platforms,
        What::Workloads,
        What::Policies,
        What::Studies,
        What::Governors,
        What::Placements,
        What::Classes,
        What::Trackers,
        What::IdleGovernors,
        What::Pressure,
        What::PowerHals,
    ];
    let kinds = what.map_or(ALL.to_vec(), |w| vec![w]);
    let style = output::style();
    let page = |kind: What| {
        let (title, rows) = match kind {
            What::Platforms => ("platforms", entries(&library::platforms())),
            What::Policies => ("policies", entries(&library::policies())),
            What::Workloads => ("workloads", entries(&library::workloads())),
            What::Studies => ("studies", entries(&library::studies())),
            What::Governors => {
                let all = risetime_sim::governor::REGISTRY.iter();
                ("governors", rows(all.map(|d| (d.name, d.doc))))
            }
            What::Placements => {
                let all = risetime_sim::placement::REGISTRY.iter();
                ("placements", rows(all.map(|d| (d.name, d.doc))))
            }
            What::Classes => {
                ("scheduling classes, the highest first", rows(risetime_sim::classes()))
            }
            What::Trackers => {
                let all = risetime_sim::tracker::REGISTRY.iter();
                ("load trackers", rows(all.map(|d| (d.name, d.doc))))
            }
            What::IdleGovernors => {
                let all = risetime_sim::cpuidle::REGISTRY.iter();
                ("idle governors", rows(all.map(|d| (d.name, d.doc))))
            }
            What::Pressure => {
                ("what takes capacity from CPUs", rows(risetime_sim::pressure_sources()))
            }
            What::PowerHals => {
                let all = risetime_sim::power_hal::REGISTRY.iter();
                ("power HALs", rows(all.map(|d| (d.name, d.doc))))
            }
            What::Settings => return text::param_table(&risetime_sim::catalogue(), &style).into(),
        };
        text::names(title, &rows, &style).into()
    };
    let pages: Vec<String> = kinds.into_iter().map(page).collect();
    output::print(&pages.join("\n"))
}

fn rows<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(String, String)> {
    all.map(|(name, doc)| (name.to_string(), doc.to_string())).collect()
}

fn entries(entries: &[Entry]) -> Vec<(String, String)> {
    let name = |e: &Entry| match e.aliases {
        [] => e.name.to_string(),
        aliases => format!("{} ({})", e.name, aliases.join(", ")),
    };
    entries.iter().map(|e| (name(e), e.about())).collect()
}

pub(crate) fn show(args: &Show) -> Result<ExitCode, Failure> {
    let style = output::style();
    if let Some(case) = risetime_verify::wide_named(&args.name, risetime_verify::Can::ALL) {
        return drawn(&case, args);
    }
    let noun = Noun::of(&args.name, &args.reading.changes())?;
    if args.source {
        return output::print(&noun.source(&args.name)?);
    }
    if args.dts {
        let Noun::Platform(p) = noun else {
            return Err(Failure::input("--dts", format!("{} is no platform", args.name)));
        };
        return output::print(&risetime_vm::dtb::source(&p)?);
    }
    output::print(&match noun {
        Noun::Platform(p) => text::platform(&p, &style),
        Noun::Workload(w) => text::workload(&w, &style),
        Noun::Study(s) => text::study_contents(&s, &style),
        Noun::Policy(p) => {
            let resolved = match &args.platform {
                Some(platform) => Some(risetime_sim::resolve(&names::platform(platform)?, &p)?),
                None => None,
            };
            text::policy(&p, resolved.as_ref(), &style)
        }
    })
}

/// A drawn experiment: its file, or what is in it.
fn drawn(case: &risetime_verify::Case, args: &Show) -> Result<ExitCode, Failure> {
    let file = case.to_file();
    if args.source {
        return output::print(&file);
    }
    if args.dts {
        return Err(Failure::input("--dts", format!("{} is no platform", args.name)));
    }
    output::print(&text::workload(&Workload::parse(&file, &case.name)?, &output::style()))
}

pub(crate) fn check(args: &Check) -> Result<ExitCode, Failure> {
    let platform = match &args.platform {
        Some(name) => Some((name.as_str(), names::platform(name)?)),
        None => None,
    };
    let on = platform.as_ref().map(|(name, platform)| (*name, platform, args.policy.as_deref()));
    let mut report = String::new();
    let (mut errors, mut warnings) = (0, 0);
    for name in &args.names {
        match check_one(name, on, &args.reading) {
            Ok((kind, found)) if found.is_empty() => report += &format!("{name}: {kind}, ok\n"),
            Ok((kind, found)) => {
                warnings += found.len();
                report += &format!("{name}: {kind}, {} warning(s)\n", found.len());
                for w in &found {
                    report += &format!("  warning: {}\n", w.replace('\n', "\n  "));
                }
            }
            Err(e) => {
                errors += 1;
                output::note(&e.to_string());
            }
        }
    }
    output::print(&report)?;
    Ok(match (errors, warnings) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) if !args.strict => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(1),
        _ => ExitCode::from(2),
    })
}

/// Checks what `name` stands for, on a platform (as it was named) under a policy if these are given.
fn check_one(
    name: &str,
    on: Option<(&str, &Platform, Option<&str>)>,
    reading: &Reading,
) -> Result<(&'static str, Vec<String>), RunError> {
    let platform = on.map(|(_, platform, _)| platform);
    match Noun::of(name, &reading.changes())? {
        Noun::Platform(p) => Ok(("platform", said(&p.doubts).chain(p.warnings()).collect())),
        Noun::Workload(w) => {
            if let Some(p) = platform {
                w.bind(p)?;
            }
            risetime_sim::supported(&w)?;
            let mut doubts = risetime_lab::workload_doubts(&w, platform);
            doubts.extend(w.too_little_runtime(platform));
            if let Some((named, p, policy)) = on {
                // As `run` would.
                let noise = Some(OF_A_MACHINE);
                let policies = policy.map(String::from).into_iter().collect();
                let changes = reading.changes();
                let request = Request { noise, policies, changes, ..Request::new(name, named) };
                request.experiments()?.pop().map_or(Ok(()), risetime_lab::rehearse)?;
                if let Some(policy) = policy {
                    doubts.extend(risetime_lab::policy_doubts(&names::policy(policy, &[])?, p));
                }
            }
            let without = w.without_effect.iter().map(|k| format!("without effect: {k}"));
            Ok(("workload", said(&doubts).chain(without).collect()))
        }
        Noun::Study(s) => {
            risetime_study::check_study(&s)?;
            Ok(("study", Vec::new()))
        }
        Noun::Policy(p) => {
            let any = names::platform("m1")?;
            risetime_sim::resolve(platform.unwrap_or(&any), &p)?;
            let doubts = platform.map(|on| risetime_lab::policy_doubts(&p, on));
            Ok(("policy", said(&doubts.unwrap_or_default()).collect()))
        }
    }
}

fn said(doubts: &[InputError]) -> impl Iterator<Item = String> {
    doubts.iter().map(InputError::to_string)
}
