//! Faults in what a person wrote.

use std::fmt;

/// A fault in what a person wrote: where it is, what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// Kind of the fault, for programs.
    pub code: Code,
    /// File (or built-in) and place in it: `my.json:12:7`, `my.toml: domain 2: opp 3`.
    pub place: String,
    /// Subject of the fault, where the place does not say yet where that is written; `None`: it does.
    pub subject: Option<Subject>,
    /// The fault: lower case, found and wanted.
    pub what: String,
    /// Advice on what to do about the fault, if more can be said than `what` says.
    pub hint: Option<String>,
}

/// Subject of a fault that was found where nobody knows in which file, and where in it, the subject stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A task of the workload, by its name.
    Task(String),
    /// Settings of the policy, by their names, that do not go with the platform or with each other.
    Settings(Vec<String>),
    /// A whole argument of the command line.
    Argument,
}

/// Kind of a fault. Programs go by it; what a person reads is the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// There is no such file.
    NotFound,
    /// The file is there and cannot be read: a directory, a missing permission, a device's error.
    Unreadable,
    /// The file or value is beyond the bounds that are read.
    TooBig,
    /// The text is not of its format: not UTF-8, not JSON, not TOML.
    Syntax,
    /// A name that nobody knows: of a built-in, a key, a setting, a figure.
    UnknownName,
    /// Anything else: a value out of range, things that do not go together.
    Invalid,
    /// Nothing is wrong with the input: what a backend needs is not here.
    Unavailable,
    /// Nothing is wrong with the input: the run went wrong on the way.
    Failed,
}

impl Code {
    /// All codes.
    pub const ALL: [Code; 8] = [
        Code::NotFound,
        Code::Unreadable,
        Code::TooBig,
        Code::Syntax,
        Code::UnknownName,
        Code::Invalid,
        Code::Unavailable,
        Code::Failed,
    ];

    /// The code's word in documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::NotFound => "not_found",
            Code::Unreadable => "unreadable",
            Code::TooBig => "too_big",
            Code::Syntax => "syntax",
            Code::UnknownName => "unknown_name",
            Code::Invalid => "invalid",
            Code::Unavailable => "unavailable",
            Code::Failed => "failed",
        }
    }

    /// The status with which the command ends.
    pub const fn exit(self) -> u8 {
        match self {
            Code::Failed => 1,
            Code::Unavailable => 3,
            _ => 2,
        }
    }
}

impl InputError {
    /// An error at `place`.
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> InputError {
        InputError {
            code: Code::Invalid,
            place: place.into(),
            subject: None,
            what: what.into(),
            hint: None,
        }
    }

    /// An error about the task `comm`, wherever that is written.
    pub fn of_task(comm: &str, what: impl Into<String>) -> InputError {
        let subject = Some(Subject::Task(comm.to_string()));
        InputError { subject, ..InputError::new(format!("task `{comm}`"), what) }
    }

    /// An error about the setting `name`, wherever that is written.
    pub fn of_setting(
        name: impl fmt::Display,
        value: impl fmt::Display,
        what: impl Into<String>,
    ) -> InputError {
        let place = format!("setting {name}={value}");
        InputError::new(place, what).of_settings(&[&name])
    }

    /// Adds a hint to the error.
    pub fn hint(mut self, hint: impl Into<String>) -> InputError {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the settings that the error is about, wherever they are written.
    pub fn of_settings(self, names: &[&dyn fmt::Display]) -> InputError {
        self.about(Subject::Settings(names.iter().map(|name| name.to_string()).collect()))
    }

    /// Sets the kind of the fault.
    pub fn code(mut self, code: Code) -> InputError {
        self.code = code;
        self
    }

    /// Sets the subject, which the place does not locate yet.
    pub fn about(mut self, subject: Subject) -> InputError {
        self.subject = Some(subject);
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)?;
        match &self.hint {
            Some(h) => write!(f, "\n  hint: {h}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for InputError {}
