//! `risetime-guest`: runs one experiment on the kernel it finds itself on.
//!
//! ```text
//! risetime-guest                      as process 1 of a virtual machine: does what the guest's /job
//!                                     says, and writes `answer` in QEMU's directory on the host
//! risetime-guest shell                the same machine with a few commands to look around in it
//! risetime-guest --native JOB ANSWER  as an ordinary program: it changes no setting of the
//!                                     machine, and traces into a buffer of its own
//! ```
//!
//! Whatever happens as process 1, an answer is written and the machine switched off: the answer's
//! `error` section says what went wrong. A kernel hands words that it does not know to process 1
//! (`nokaslr`, say), so other arguments mean nothing there.

use risetime_job::{answer, job};

mod cgroup;
mod ender;
mod experiment;
mod gate;
mod hotplug;
mod idle;
mod machine;
mod settle;
mod shell;
mod starter;
mod sync;
mod sys;
mod tracefs;
mod work;

use answer::{Writer, value_line};
use experiment::Noted;
use job::Job;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tracefs::Tracer;

/// The job in the guest.
const JOB: &str = "/job";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if std::process::id() == 1 {
        as_init(&args);
    }
    match &args[..] {
        [flag, job, out] if flag == "--native" => match native(job, out) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("risetime-guest: {e}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: risetime-guest --native JOB ANSWER");
            ExitCode::from(2)
        }
    }
}

/// The whole life of the virtual machine.
fn as_init(args: &[String]) -> ! {
    if args.iter().any(|a| a == "shell") {
        let ready = machine::mount_all()
            .and_then(|()| read_job(JOB))
            .and_then(|job| prepare(&job, &mut String::new()));
        if let Err(e) = ready {
            println!("risetime-guest: {e}");
        }
        shell::run();
        sys::switch_off();
    }
    // The host waits less long for a kernel that never came so far.
    let _ = sys::HostFile::create(answer::ALIVE);
    std::panic::set_hook(Box::new(|info| give_up("error", &format!("the agent broke: {info}"))));
    let job = machine::mount_all().and_then(|()| read_job(JOB));
    if let Some(what) = job.as_ref().ok().and_then(experiment::lacking) {
        give_up("lacks", what);
    }
    match job.and_then(|job| in_guest(&job)) {
        Ok(()) => sys::end_machine(0),
        Err(e) => give_up("error", &e),
    }
}

/// An answer that says in `section` why there is none.
fn give_up(section: &str, why: &str) -> ! {
    // The console is the second way out, where there is no semihosting.
    let _ = std::fs::write("/dev/console", format!("risetime-guest: {why}\n"));
    let written = sys::HostFile::create(answer::ANSWER).and_then(|file| {
        let mut out = Writer::new(BufWriter::new(file))?;
        out.section(section, why.as_bytes())?;
        out.finish()?.flush()
    });
    // An answer is an answer: only where there is none is it the exit code that says so.
    sys::end_machine(written.is_err().into())
}

fn in_guest(job: &Job) -> Result<(), String> {
    let mut values = String::new();
    prepare(job, &mut values)?;
    let tracer = Tracer::open(job, false, &mut values).map_err(|e| format!("trace: {e}"))?;
    let mut job = job.clone();
    let settling = |e: io::Error| format!("settling: {e}");
    settle::first(&job).map_err(settling)?;
    gate::pass(&mut job)?;
    settle::last(&job).map_err(settling)?;
    let io = |e: io::Error| format!("{}: {e}", answer::ANSWER);
    let done = experiment::run(job.clone(), Some(tracer)).map_err(|e| e.to_string())?;
    machine::read_back(&job, &mut values);
    let file = sys::HostFile::create(answer::ANSWER).map_err(io)?;
    write_answer(BufWriter::with_capacity(1 << 16, file), &done, values).map_err(io)
}

/// Modules and settings.
fn prepare(job: &Job, values: &mut String) -> Result<(), String> {
    machine::load_modules(job, values)?;
    machine::wait_for_policies(job)?;
    machine::apply(job, values);
    Ok(())
}

fn native(job: &str, out: &str) -> Result<(), String> {
    let job = read_job(job)?;
    if !job.modules.is_empty()
        || !job.set.is_empty()
        || !job.probes.is_empty()
        || job.settle_ns > 0
        || !job.groups.is_empty()
        || !job.partitions.is_empty()
        || !job.hotplug.is_empty()
        || !job.idle.is_empty()
    {
        return Err(
            "this job changes the machine (modules, settings, probes, settling, task groups, partitions, \
             hotplug, idle states)"
                .into(),
        );
    }
    let mut values = String::new();
    let tracer = match job.events.is_empty() {
        true => None,
        false => Some(Tracer::open(&job, true, &mut values).map_err(|e| format!("trace: {e}"))?),
    };
    let done = experiment::run(job.clone(), tracer).map_err(|e| e.to_string())?;
    machine::read_back(&job, &mut values);
    let io = |e: io::Error| format!("{out}: {e}");
    let written =
        File::create(out).and_then(|file| write_answer(BufWriter::new(file), &done, values));
    if let Some(tracer) = done.tracer {
        tracer.close();
    }
    written.map_err(io)
}

fn read_job(path: &str) -> Result<Job, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let job = Job::parse(&text).map_err(|e| format!("{path}: {e}"))?;
    experiment::check(&job).map_err(|e| format!("{path}: {e}"))?;
    Ok(job)
}

/// Writes trace, values and failures to `out`.
fn write_answer<W: Write>(out: W, done: &experiment::Done, mut values: String) -> io::Result<()> {
    let mut out = Writer::new(out)?;
    if !done.failures.is_empty() {
        out.section("error", done.failures.join("\n").as_bytes())?;
    }
    if let Some(tracer) = done.tracer {
        tracer.collect(&mut out, &mut values)?;
    }
    values.push_str(&value_line("start_ns", &done.start.to_string()));
    if let Some(tick) = done.tick {
        values.push_str(&value_line("a_tick", &tick.to_string()));
    }
    for (i, pid) in done.pids.iter().enumerate() {
        values.push_str(&value_line(&format!("task.{i}.pid"), &pid.to_string()));
    }
    for (i, ns) in &done.late {
        values.push_str(&value_line(&format!("task.{i}.late_ns"), &ns.to_string()));
    }
    for (i, fork) in done.forks.iter().enumerate() {
        let i = done.pids.len() + i;
        values.push_str(&value_line(&format!("task.{i}.pid"), &fork.pid.to_string()));
        values.push_str(&value_line(&format!("task.{i}.fork"), &fork.of.to_string()));
    }
    for (i, marks) in done.marks.iter().enumerate().filter(|(_, marks)| !marks.is_empty()) {
        let line = |(at, mark): &Noted| {
            let numbers = mark.to_numbers().map(|n| n.to_string()).join(" ");
            format!("{at} {numbers}\n")
        };
        out.section(&format!("marks {i}"), marks.iter().map(line).collect::<String>().as_bytes())?;
    }
    out.section("values", values.as_bytes())?;
    out.finish()?.flush()
}
