//! Output: where text goes, how it looks, and how the command ends.

use crate::args::Picture;
use clap::ArgMatches;
use risetime_model::InputError;
use risetime_report::text::Style;
use risetime_trace::RunError;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Failure of the command, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// A failure by bad input or usage (2).
    pub(crate) fn input(place: &str, what: impl Into<String>) -> Failure {
        InputError::new(place, what).into()
    }
    /// A failure to write: a name that nobody can write to is bad input (2), all else, as a disk
    /// that is full, a run that went wrong in the end (1).
    pub(crate) fn unwritten(path: &Path, e: &std::io::Error) -> Failure {
        use std::io::ErrorKind as Kind;
        let code = match e.kind() {
            Kind::NotFound | Kind::PermissionDenied | Kind::IsADirectory | Kind::NotADirectory => 2,
            Kind::ReadOnlyFilesystem | Kind::InvalidFilename | Kind::ExecutableFileBusy => 2,
            _ if e.raw_os_error().is_none() && e.kind() == Kind::InvalidInput => 2,
            _ => 1,
        };
        Failure { message: format!("{}: {}", path.display(), system_words(e)), code }
    }
    /// A run whose results are lost (1).
    pub(crate) fn lost(what: &InputError) -> Failure {
        Failure { message: what.to_string(), code: 1 }
    }
    /// A failure by something that cannot be done here (3).
    pub(crate) fn unavailable(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 3 }
    }
    /// Says so on standard error.
    pub(crate) fn report(self) -> ExitCode {
        let _ = writeln!(std::io::stderr(), "risetime: {}", self.message);
        ExitCode::from(self.code)
    }
}

impl From<InputError> for Failure {
    fn from(e: InputError) -> Failure {
        Failure { message: e.to_string(), code: 2 }
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Failure {
        Failure { message: e.to_string(), code: e.code().exit() }
    }
}

/// Returns standard output, whose reader may go away.
pub(crate) fn stdout() -> impl Write + Send {
    Heard(std::io::stdout())
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    stream(|out| out.write_all(text.as_bytes()))
}

/// Prints to standard output piece by piece.
pub(crate) fn stream(
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<ExitCode, Failure> {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, stdout());
    let done = write(&mut out).and_then(|()| out.flush());
    done.map(|()| ExitCode::SUCCESS)
        .map_err(|e| Failure::unwritten(Path::new("standard output"), &e))
}

/// A remark for the person at the terminal.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "risetime: {text}");
}

/// The look of text on standard output: as wide as the terminal, plain where it is piped.
pub(crate) fn style() -> Style {
    let terminal = std::io::stdout().is_terminal();
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let width = match terminal_size::terminal_size_of(std::io::stdout()) {
        Some((width, _)) => usize::from(width.0),
        None => columns.unwrap_or(80),
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|v| v == "dumb");
    Style { width, color: terminal && !no_color && !dumb, unicode: unicode() }
}

/// Whether to print Unicode: yes, unless the locale says otherwise.
fn unicode() -> bool {
    let set = |name| std::env::var(name).ok().filter(|v| !v.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_none_or(|l| l.to_lowercase().replace('-', "").contains("utf8"))
}

/// A file with these bytes, which appears whole or not at all.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_whole(path, |out| out.write_all(bytes).map_err(|e| Failure::unwritten(path, &e)))
}

/// A file that appears whole or not at all: written beside its place, then renamed.
///
/// A symbolic link stays one, and its target is written, whether or not that is there yet; a file that is there
/// keeps its mode. What is there and no regular file (a device, a pipe) is written to and never replaced. Standard
/// output by its name is written to as what is printed: another opening of it would begin at its file's start.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let unwritten = |e: std::io::Error| Failure::unwritten(path, &e);
    if STDOUT.iter().any(|name| path == Path::new(name)) {
        let mut out = stdout();
        return write(&mut out).and_then(|()| out.flush().map_err(unwritten));
    }
    // Follows links; what is not there yet, or cannot be looked at, is told of when it is created.
    let there = std::fs::metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        let device = std::fs::File::options().write(true).open(path).map_err(unwritten)?;
        let mut out = std::io::BufWriter::new(Heard(device));
        return write(&mut out).and_then(|()| out.flush().map_err(unwritten));
    }
    let round = |e: std::io::Error| Failure::input(&path.display().to_string(), e.to_string());
    let target = link_target(path).map_err(round)?;
    let parent = parent(&target);
    if !parent.is_dir() {
        let what = format!("there is no directory {}", parent.display());
        return Err(Failure::input(&path.display().to_string(), what));
    }
    if target.file_name().is_none() {
        return Err(Failure::input(&path.display().to_string(), "is no file name"));
    }
    if there.is_some() {
        // Renaming asks the directory only: a file that nobody may write to stays.
        std::fs::File::options().write(true).open(&target).map_err(unwritten)?;
    }
    risetime_model::output::whole(&target, there.map(|there| there.permissions()), unwritten, write)
}

/// The directory that a path's last name is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether no file that a command is to write is another one of these, or one that it reads, however they are spelt.
/// A device or a pipe takes more than one.
///
/// Errors: one of them is.
pub(crate) fn distinct(matches: &ArgMatches) -> Result<(), Failure> {
    let mut matches = matches;
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    let own = || matches.ids().map(clap::Id::as_str).filter(|id| !DIRECTORIES.contains(id));
    let written = |id: &str| {
        let pictures = matches.try_get_many::<Picture>(id).ok().flatten();
        let files = matches.try_get_many::<PathBuf>(id).ok().flatten();
        let pictures = pictures.into_iter().flatten().map(|picture| &picture.path);
        pictures.chain(files.into_iter().flatten()).map(PathBuf::as_path).collect::<Vec<_>>()
    };
    let mut all: Vec<(&str, &Path, Place)> = Vec::new();
    for (id, path) in own().flat_map(|id| written(id).into_iter().map(move |path| (id, path))) {
        let Some(place) = Place::of(path) else { continue };
        if let Some((other, first, _)) = all.iter().find(|(_, _, there)| *there == place) {
            let what = format!("is the same file as --{other} {}", first.display());
            let place = format!("--{id} {}", path.display());
            return Err(InputError::new(place, what).hint("each needs a name of its own").into());
        }
        all.push((id, path, place));
    }
    for id in own().filter(|id| written(id).is_empty()) {
        let given = matches.try_get_raw(id).ok().flatten();
        for word in given.into_iter().flatten().map(Path::new) {
            let read = Place::of(word).filter(|place| matches!(place, Place::There(..)));
            // A word as `json` is a name of something else.
            let named = word.extension().is_some() || word.components().count() > 1;
            let same = all.iter().find(|(_, _, place)| named && Some(place) == read.as_ref());
            if let Some((id, path, _)) = same {
                let place = format!("--{id} {}", path.display());
                let what = format!("is {}, which is read", word.display());
                return Err(InputError::new(place, what)
                    .hint("what is written needs another name")
                    .into());
            }
        }
    }
    Ok(())
}

/// Options that name directories, into which more than one may write.
const DIRECTORIES: [&str; 3] = ["directory", "record", "references"];

/// File that a path is about.
#[derive(PartialEq, Eq)]
enum Place {
    /// A file that exists: device and inode.
    There(u64, u64),
    /// A file that is to come: its directory, as the system calls it, and its name.
    New(PathBuf, std::ffi::OsString),
}

impl Place {
    /// `None`: it is no file, or nobody can say.
    fn of(path: &Path) -> Option<Place> {
        use std::os::unix::fs::MetadataExt;
        match std::fs::metadata(path) {
            Ok(there) => there.is_file().then(|| Place::There(there.dev(), there.ino())),
            Err(_) => {
                let target = link_target(path).ok()?;
                let directory = std::fs::canonicalize(parent(&target)).ok()?;
                Some(Place::New(directory, target.file_name()?.into()))
            }
        }
    }
}

/// Names of standard output.
const STDOUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Follows the symbolic links of `path` to a file which need not be there.
///
/// Errors: they go round in a circle.
fn link_target(path: &Path) -> std::io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    // As many as the kernel follows (MAXSYMLINKS).
    for _ in 0..=40 {
        match std::fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(std::io::Error::other("too many levels of symbolic links"))
}

/// A device or pipe; a reader that has gone away (`| head`) is no error.
struct Heard<W>(W);

impl<W: Write> Write for Heard<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.write(bytes) {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            done => done,
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        match self.0.flush() {
            Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            done => done,
        }
    }
}

/// The system's own words for an I/O error, without Rust's "(os error 13)".
pub(crate) fn system_words(e: &std::io::Error) -> String {
    let text = e.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}
