//! Arguments that are built only where they are wanted: those of one subcommand take a fraction of
//! the time that those of all do.

use super::Cli;
use clap::{ArgMatches, Args, Command, CommandFactory, Error, FromArgMatches, Subcommand};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::ops::Deref;

thread_local! {
    /// Name of the subcommand whose arguments are wanted; `None`: those of all are.
    static WANTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the whole command, with arguments only of the subcommand that `first`, the first word
/// behind the command's name, is. If that is none, with those of all: it is an option, a request
/// for help, or wrong.
pub(crate) fn command_for(first: Option<&OsStr>) -> Command {
    let Some(first) = first.and_then(OsStr::to_str) else { return Cli::command() };
    WANTED.set(Some(first.to_string()));
    let command = Cli::command();
    WANTED.set(None);
    let known = command.get_subcommands().any(|known| known.get_name() == first);
    if known { command } else { Cli::command() }
}

fn is_wanted(command: &Command) -> bool {
    WANTED.with_borrow(|wanted| wanted.as_ref().is_none_or(|name| name == command.get_name()))
}

/// Arguments or subcommands of a subcommand.
#[derive(Debug)]
pub(crate) struct OnDemand<T>(T);

impl<T> Deref for OnDemand<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for OnDemand<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<OnDemand<T>, Error> {
        T::from_arg_matches(matches).map(OnDemand)
    }
    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<OnDemand<T>, Error> {
        T::from_arg_matches_mut(matches).map(OnDemand)
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}

impl<T: Args> Args for OnDemand<T> {
    fn augment_args(command: Command) -> Command {
        if is_wanted(&command) { T::augment_args(command) } else { command }
    }
    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: Subcommand> Subcommand for OnDemand<T> {
    fn augment_subcommands(command: Command) -> Command {
        if is_wanted(&command) { T::augment_subcommands(command) } else { command }
    }
    fn augment_subcommands_for_update(command: Command) -> Command {
        T::augment_subcommands_for_update(command)
    }
    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the arguments and subcommands of each subcommand.
    fn counts(command: &Command) -> Vec<(String, usize)> {
        let count = |c: &Command| c.get_arguments().count() + c.get_subcommands().count();
        command.get_subcommands().map(|c| (c.get_name().to_string(), count(c))).collect()
    }

    #[test]
    fn a_subcommand_has_all_of_its_arguments_and_others_have_none_of_theirs() {
        let all = counts(&Cli::command());
        for (name, own) in &all {
            let built = counts(&command_for(Some(OsStr::new(name))));
            assert_eq!(built.len(), all.len());
            assert!(built.contains(&(name.clone(), *own)), "{name}");
            let sum = |all: &[(String, usize)]| all.iter().map(|(_, n)| n).sum::<usize>();
            assert!(sum(&built) <= own + 4, "{name}: {built:?}");
        }
    }

    #[test]
    fn whoever_asks_for_help_or_errs_is_told_of_all_arguments() {
        let all = counts(&Cli::command());
        for first in ["help", "--help", "ru", "-x", ""] {
            assert_eq!(counts(&command_for(Some(OsStr::new(first)))), all, "{first}");
        }
        assert_eq!(counts(&command_for(None)), all);
    }
}
