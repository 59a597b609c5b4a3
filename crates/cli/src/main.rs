//! The `risetime` command: the only room that prints.
//!
//! Results go to standard output, everything else to standard error. Exit codes: 0 ok, 1 a
//! check failed or a run went wrong, 2 usage or bad input, 3 cannot run here (and why).

mod advise;
mod args;
mod compare;
mod complete;
mod convert;
mod demo;
mod deploy;
mod explain;
mod export;
#[cfg(feature = "highs")]
mod highs;
mod history;
mod import;
mod interference;
mod library;
mod output;
mod plot;
mod prose;
mod report;
mod reproduce;
mod run;
mod shown;
mod spool;
mod sweep;
mod this_machine;
mod trace;
mod verify;
mod vm;
mod worker;
mod written;

use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use output::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    complete::answer();
    risetime_model::output::listen_with(risetime_sys::signals::listen);
    // What is wrong with the command line is no verdict, either.
    let mut bisects = std::env::args_os().any(|arg| arg == args::GIT_BISECT);
    if bisects {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            told(panic);
            std::process::exit(SKIP.into());
        }));
    }
    let command = args::command_for(std::env::args_os().nth(1).as_deref());
    let parsed = command.try_get_matches().and_then(|matches| {
        let cli = Cli::from_arg_matches(&matches);
        Ok((cli.map_err(|e| e.format(&mut Cli::command()))?, matches))
    });
    let done = match parsed {
        Ok((cli, matches)) => {
            bisects |= matches!(&cli.command, Command::Run(run) if run.git_bisect);
            output::distinct(&matches).and_then(|()| dispatch(&cli.command))
        }
        Err(e) if bisects => {
            let _ = e.print();
            return ExitCode::from(SKIP);
        }
        Err(e) if e.use_stderr() => e.exit(),
        Err(help) => output::print(&match output::style().color {
            true => help.render().ansi().to_string(),
            false => help.render().to_string(),
        }),
    };
    if let (Ok(_), (runs @ 1.., events)) = (&done, risetime_lab::both_ways()) {
        output::note(&format!(
            "{runs} simulation(s) made with the simulator's short ways and without: all {events} events are the same"
        ));
    }
    match done {
        Ok(code) => code,
        Err(failure) => match failure.report() {
            _ if bisects => ExitCode::from(SKIP),
            code => code,
        },
    }
}

/// Exit code that tells `git bisect run` to skip this one. Any other below 128 but 0 would be
/// "bad".
const SKIP: u8 = 125;

fn dispatch(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Demo => demo::demo(),
        Command::Run(args) => run::run(args),
        Command::Report(args) => report::report(args),
        Command::Compare(args) => compare::compare(args),
        Command::Sweep(args) => sweep::sweep(args),
        Command::Explain(args) => explain::explain(args),
        Command::Advise(args) => advise::advise(args),
        Command::List(args) => library::list(args.what),
        Command::Show(args) => library::show(args),
        Command::Check(args) => library::check(args),
        Command::Export(args) => export::export(args),
        Command::Convert(args) => convert::convert(args),
        Command::Capture(args) => this_machine::capture(args),
        Command::Import(args) => import::import(args),
        Command::Doctor(args) => this_machine::doctor(args.format),
        Command::Verify(args) => verify::verify(args),
        Command::History(args) => history::history(args),
        Command::Reproduce(args) => reproduce::reproduce(args),
        Command::Deploy(args) => deploy::deploy(args),
        Command::Vm(args) => vm::vm(args),
        Command::Worker => worker::worker(),
        Command::Completions { shell } => output::print(&complete::script(*shell)),
        Command::Man { directory } => {
            let fail = |e: std::io::Error| {
                Failure::input(&directory.display().to_string(), output::system_words(&e))
            };
            std::fs::create_dir_all(directory).map_err(fail)?;
            clap_mangen::generate_to(Cli::command(), directory)
                .map_err(|e| Failure::unwritten(directory, &e))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
