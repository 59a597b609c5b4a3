//! `risetime export`: a workload for rt-app.

use crate::args::rtapp::Export;
use crate::output::{self, Failure};
use risetime_lab::names;
use std::process::ExitCode;

pub(crate) fn export(args: &Export) -> Result<ExitCode, Failure> {
    let workload = names::workload(&args.workload, &args.reading.changes())?;
    let platform = args.platform.as_deref().map(names::platform).transpose()?;
    if let Some(platform) = &platform {
        workload.bind(platform)?;
    }
    let exported = workload.exported(args.reader.rt_app(), platform.as_ref());
    for note in &exported.notes {
        output::note(&format!("{}: {note}", args.workload));
    }
    match &args.output {
        None => output::print(&exported.text),
        Some(path) => {
            output::write_file(path, exported.text.as_bytes())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
