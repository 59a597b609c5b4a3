//! `risetime capture` and `doctor`: the machine the command runs on. Nothing is changed.

use crate::args::{Capture, TextOrJson};
use crate::output::{self, Failure};
use risetime_host::Root;
use risetime_report::text::{self, Finding, Severity};
use serde_json::json;
use std::process::ExitCode;

pub(crate) fn capture(args: &Capture) -> Result<ExitCode, Failure> {
    let captured = risetime_host::capture(&Root::new("/"));
    match &args.output {
        Some(path) => output::write_file(path, captured.platform_toml.as_bytes())?,
        None => {
            output::print(&captured.platform_toml)?;
        }
    }
    captured.missing.iter().for_each(|m| output::note(&format!("missing: {m}")));
    captured.estimates.iter().for_each(|e| output::note(&format!("estimate: {e}")));
    match captured.platform {
        Some(_) => Ok(ExitCode::SUCCESS),
        None => Err(Failure::unavailable(
            "this machine does not say enough for a platform that can be run; the file names what to fill in",
        )),
    }
}

/// The findings about this machine, the gravest first.
pub(crate) fn findings() -> Vec<Finding> {
    let severity = |s| match s {
        risetime_host::Severity::Costly => Severity::Costly,
        risetime_host::Severity::Notable => Severity::Notable,
        risetime_host::Severity::Unreadable => Severity::Unreadable,
        risetime_host::Severity::Fine => Severity::Fine,
    };
    let found = risetime_host::doctor(&Root::new("/"));
    found
        .into_iter()
        .map(|f| Finding {
            severity: severity(f.severity),
            title: f.title,
            evidence: f.evidence.iter().map(|e| format!("{}: {}", e.file, e.value)).collect(),
            meaning: f.meaning,
            hint: f.hint,
        })
        .collect()
}

pub(crate) fn doctor(format: TextOrJson) -> Result<ExitCode, Failure> {
    if let Some(form) = format.prose() {
        return output::print(&form.of(|style| text::findings(&findings(), style)));
    }
    let found: Vec<_> = risetime_host::doctor(&Root::new("/"))
        .iter()
        .map(|f| {
            let evidence: Vec<_> = f.evidence.iter().map(|e| json!({"file": e.file, "value": e.value})).collect();
            json!({"severity": f.severity.as_str(), "title": f.title, "evidence": evidence, "meaning": f.meaning, "hint": f.hint})
        })
        .collect();
    output::print(&format!("{:#}\n", json!({"schema": 1, "findings": found})))
}
