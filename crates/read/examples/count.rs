//! Running time, switches and wakeups of each thread of a trace, and how fast it was read.
//!
//! ```text
//! cargo run --release -p risetime-read --example count -- FILE [BUFFER]
//! ```
//!
//! `SPEED=1` counts nothing, so that only the reading takes time.
//!
//! A line for each thread number that ran or was woken: number, ns of running, turns, wakeups, new ones among these.

use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_read::{Options, Source, read};
use risetime_trace::{Event, Header, TraceSink, Why};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Counts of a thread.
#[derive(Default)]
struct Counts {
    ns: u64,
    turns: u64,
    wakeups: u64,
    new: u64,
}

/// Counts of all tasks, and who runs where since when.
#[derive(Default)]
struct Count {
    tasks: BTreeMap<TaskId, Counts>,
    runs: BTreeMap<CpuId, (Option<TaskId>, Instant)>,
    header: Option<Header>,
    unseen: u64,
}

impl TraceSink for Count {
    fn header(&mut self, header: &Header) {
        self.header = Some(header.clone());
    }
    fn event(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::Switch { cpu, next, .. } => {
                if let Some((Some(task), since)) = self.runs.insert(cpu, (next, at)) {
                    self.tasks.entry(task).or_default().ns += at.0 - since.0;
                }
                if let Some(next) = next {
                    self.tasks.entry(next).or_default().turns += 1;
                }
            }
            Event::Wakeup { task, .. } => self.tasks.entry(task).or_default().wakeups += 1,
            Event::TaskNew { task, why, .. } if why != Why::Earlier => {
                self.tasks.entry(task).or_default().new += 1;
            }
            Event::Unseen { cpu } => {
                self.unseen += 1;
                if let Some((Some(task), since)) = self.runs.remove(&cpu) {
                    self.tasks.entry(task).or_default().ns += at.0 - since.0;
                }
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

/// Takes in every event and does nothing with it.
struct Nothing(u64);

impl TraceSink for Nothing {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, _: &Event) {
        self.0 ^= at.0;
    }
    fn end(&mut self, _: Instant) {}
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        eprintln!("usage: count FILE [BUFFER]");
        return ExitCode::from(2);
    };
    let options = Options { buffer: args.next(), ..Options::default() };
    let mut count = Count::default();
    let mut nothing = Nothing(0);
    let speed = std::env::var_os("SPEED").is_some();
    let sink: &mut dyn TraceSink = if speed { &mut nothing } else { &mut count };
    let begun = std::time::Instant::now();
    let read = Source::open(path.as_ref())
        .map_err(|e| e.to_string())
        .and_then(|source| read(&source, sink, &options).map_err(|e| e.to_string()));
    let summary = match read {
        Ok(summary) => summary,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    let took = begun.elapsed();
    let mut by_pid: BTreeMap<i32, Counts> = BTreeMap::new();
    for (task, counts) in &count.tasks {
        let all = by_pid.entry(summary.threads[task.index()].pid).or_default();
        all.ns += counts.ns;
        all.turns += counts.turns;
        all.wakeups += counts.wakeups;
        all.new += counts.new;
    }
    for (pid, c) in &by_pid {
        println!("{pid} {} {} {} {}", c.ns, c.turns, c.wakeups, c.new);
    }
    let records = summary.records;
    eprintln!(
        "{}: {records} events of the table, {} pushed, from {} ns, {} ns long, {} losses; {took:?}, {:.2} M/s",
        summary.format,
        summary.events,
        summary.base,
        summary.end.0,
        count.unseen,
        records as f64 / took.as_secs_f64() / 1e6
    );
    if let Some(header) = &count.header {
        let cpus = header.machine.platform.nr_cpus();
        eprintln!("{cpus} CPUs, {:?}, {:?}", header.run.clock, header.run.kernel_release);
        let signals: Vec<&str> = header.run.signals.iter().map(|s| s.name).collect();
        eprintln!("signals: {}", signals.join(" "));
        header.run.lost.iter().for_each(|lost| eprintln!("lost: {lost}"));
        for domain in &header.machine.platform.domains {
            let cpus: Vec<u32> = domain.cpus.iter().map(|cpu| cpu.0).collect();
            eprintln!("domain {cpus:?}: {} frequencies", domain.opps.len());
        }
    }
    summary.notes.iter().for_each(|note| eprintln!("note: {note}"));
    ExitCode::SUCCESS
}
