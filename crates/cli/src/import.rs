//! `risetime import`: a platform file from what another machine says of itself.

use crate::args::Import;
use crate::output::{self, Failure};
use risetime_host::import::{self, Wishes};
use std::process::ExitCode;

pub(crate) fn import(args: &Import) -> Result<ExitCode, Failure> {
    let wishes = Wishes { kind: args.kind.clone(), hz: args.hz, name: args.name.clone() };
    let imported = import::import(&args.inputs, &wishes)?;
    match &args.output {
        Some(path) => output::write_file(path, imported.platform_toml.as_bytes())?,
        None => {
            output::print(&imported.platform_toml)?;
        }
    }
    if args.output.is_some() {
        for (input, kind) in &imported.inputs {
            output::note(&format!("read: {input} ({kind})"));
        }
        imported.missing.iter().for_each(|m| output::note(&format!("missing: {m}")));
        imported.estimates.iter().for_each(|e| output::note(&format!("estimate: {e}")));
    }
    match imported.gaps.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => {
            let inputs = args.inputs.join(" ");
            Err(Failure::input(
                &inputs,
                format!("not enough for a run:\n  {}", imported.gaps.join("\n  ")),
            ))
        }
    }
}
