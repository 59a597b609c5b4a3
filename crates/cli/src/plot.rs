//! Pictures into files, each with the command that made it.

use crate::args::{Plot, Theme};
use crate::output::{self, Failure};
use risetime_model::InputError;
use risetime_report::chart::{self, Chart};

/// Reason for which a picture against energy cannot be drawn.
pub(crate) const NO_ENERGY: &str =
    "there is no energy to draw: the platform does not say what its CPUs take";

impl Plot {
    /// Whether there is anything to draw.
    pub(crate) fn wanted(&self) -> bool {
        !self.files.is_empty()
    }

    /// Refuses `--plot`, if it was given, with the reason `what` and a `hint`.
    pub(crate) fn refuse(&self, what: &str, hint: &str) -> Result<(), Failure> {
        if self.wanted() {
            return Err(InputError::new("--plot", what).hint(hint).into());
        }
        Ok(())
    }

    /// Refuses `--plot`, if it was given, with the reason `what` alone.
    pub(crate) fn refuse_as(&self, what: &str) -> Result<(), Failure> {
        if self.wanted() { Err(Failure::input("--plot", what)) } else { Ok(()) }
    }

    /// Draws into every file that is wanted.
    pub(crate) fn draw(&self, chart: impl FnOnce() -> Chart) -> Result<(), Failure> {
        if !self.wanted() {
            return Ok(());
        }
        let chart = Chart { footer: made_by(), ..chart() };
        let theme = match self.theme {
            Theme::Light => chart::Theme::Light,
            Theme::Dark => chart::Theme::Dark,
        };
        for file in &self.files {
            let bytes = if file.png { chart.png(theme) } else { chart.svg(theme).into_bytes() };
            output::write_file(&file.path, &bytes)?;
        }
        Ok(())
    }
}

/// The command as a shell takes it, and the version.
fn made_by() -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./,:=+%@".contains(c);
    let word = |arg: std::ffi::OsString| {
        let arg = arg.to_string_lossy();
        if !arg.is_empty() && arg.chars().all(plain) {
            return arg.into_owned();
        }
        format!("'{}'", arg.replace('\'', r"'\''"))
    };
    let words: Vec<String> = std::env::args_os().skip(1).map(word).collect();
    format!("risetime {}\nrisetime {}", words.join(" "), env!("CARGO_PKG_VERSION"))
}
