//! Storage for results whose number grows with the run, in a file without a name until the results
//! are printed: memory stays bounded, and nothing is printed of a run that fails.

use crate::args::{self, Format};
use crate::output::Failure;
use risetime_analysis::{Burst, Lists, Migration, Missed};
use risetime_kernel::units::TaskId;
use risetime_lab::Listing;
use risetime_model::InputError;
use risetime_report::{csv, json, text};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};

/// Bursts, and changes of CPU if they are wanted, a line each or more in the format asked for.
pub(crate) struct Spool {
    lines: BufWriter<File>,
    format: Format,
    migrations: bool,
    failed: Option<io::Error>,
}

impl Spool {
    /// An empty list; of bursts alone, or also of changes of CPU.
    pub(crate) fn new(format: Format, migrations: bool) -> Result<Spool, Failure> {
        let file = tempfile::tempfile().map_err(|e| failure(&e))?;
        Ok(Spool { lines: BufWriter::new(file), format, migrations, failed: None })
    }

    /// Reads back the lines that were listed, in order.
    pub(crate) fn lines(self) -> Result<impl Iterator<Item = io::Result<String>>, Failure> {
        let Spool { lines, failed, .. } = self;
        let rewound = || {
            failed.map_or(Ok(()), Err)?;
            let mut file = lines.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(BufReader::new(file).lines())
        };
        rewound().map_err(|e| failure(&e))
    }

    fn line(&mut self, line: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.lines, "{line}").err();
        }
    }
}

/// Receivers of the lists of a run: one that prints them, one that keeps them.
pub(crate) struct Listed {
    spool: Option<Spool>,
    kept: Option<Listing>,
}

impl Listed {
    /// The receivers that `args` ask for; `None`: nobody does.
    pub(crate) fn of(args: &args::Run) -> Result<Option<Listed>, Failure> {
        let printed = is_printed(args.bursts, args.full, args.format);
        let spool = printed.then(|| Spool::new(args.format, args.full)).transpose()?;
        let keeps = args.save_result.is_some() && (args.bursts || args.full);
        let kept = keeps.then(Listing::default);
        Ok((spool.is_some() || keeps).then_some(Listed { spool, kept }))
    }

    /// Returns what is to be printed, and what is to be kept.
    pub(crate) fn parts(self) -> (Option<Spool>, Option<Listing>) {
        (self.spool, self.kept)
    }

    fn each(&mut self, tell: impl Fn(&mut dyn Lists)) {
        self.spool.iter_mut().for_each(|spool| tell(spool));
        self.kept.iter_mut().for_each(|kept| tell(kept));
    }
}

/// Whether a report has lists. A page of text has all else with `--full`: of seconds of a server
/// they are ten thousands of lines.
pub(crate) fn is_printed(bursts: bool, full: bool, format: Format) -> bool {
    bursts || full && format.prose().is_none()
}

impl Lists for Listed {
    fn burst(&mut self, task: TaskId, comm: &str, burst: &Burst) {
        self.each(|lists| lists.burst(task, comm, burst));
    }
    fn migration(&mut self, task: TaskId, comm: &str, migration: &Migration) {
        self.each(|lists| lists.migration(task, comm, migration));
    }
    fn missed(&mut self, job: &str, missed: &Missed) {
        self.each(|lists| lists.missed(job, missed));
    }
}

fn failure(e: &io::Error) -> Failure {
    let directory = std::env::temp_dir();
    let what = format!("the list of bursts: {}", crate::output::system_words(e));
    let hint = "TMPDIR names another directory";
    Failure::lost(&InputError::new(directory.display().to_string(), what).hint(hint))
}

impl Lists for Spool {
    fn burst(&mut self, task: TaskId, comm: &str, burst: &Burst) {
        self.line(&match self.format {
            Format::Json => json::burst_line(task, comm, burst),
            Format::Csv => csv::burst_lines(task, comm, burst),
            _ => text::burst_line(comm, burst),
        });
    }
    fn missed(&mut self, job: &str, missed: &Missed) {
        match self.format {
            Format::Json => self.line(&json::missed_line(job, missed)),
            Format::Csv => self.line(&csv::missed_lines(job, missed)),
            // A page has a table of the latest.
            _ => {}
        }
    }
    fn migration(&mut self, task: TaskId, comm: &str, migration: &Migration) {
        if self.migrations {
            self.line(&match self.format {
                Format::Json => json::migration_line(task, comm, migration),
                Format::Csv => csv::migration_line(task, comm, migration),
                _ => text::migration_line(comm, migration),
            });
        }
    }
}
