//! Speed of the Perfetto reader: writes a trace of a size, and reads one.
//!
//! ```text
//! cargo run --release -p risetime-read --example perfetto -- write FILE MB
//! cargo run --release -p risetime-read --example perfetto -- read FILE
//! ```
//!
//! What is written: compact scheduling and frequencies of 8 CPUs, as `traced` drains them, 400 ms by 400 ms. What reading prints: events,
//! CPU time of both passes, and the most memory that the process has had.

use risetime_kernel::units::Instant;
use risetime_read::{Options, Source};
use risetime_trace::{Event, Header, Hears, TraceSink};
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

const CPUS: u64 = 8;
/// Time between two drains of the buffers, in ns.
const ROUND: u64 = 400_000_000;
/// Events of a bundle.
const BUNDLE: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["write", file, megabytes] => {
            let out = io::BufWriter::new(fs::File::create(file)?);
            write(out, megabytes.parse::<u64>()? << 20)?;
        }
        ["read", file] => read(Path::new(file))?,
        _ => return Err("wanted: write FILE MB, or read FILE".into()),
    }
    Ok(())
}

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn number(out: &mut Vec<u8>, field: u32, n: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, n);
}

fn bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A generator of numbers that look drawn.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// Columns of a compact bundle.
#[derive(Default)]
struct Compact {
    switch: [Vec<u8>; 5],
    waking: [Vec<u8>; 5],
    last: [u64; 2],
    events: usize,
}

impl Compact {
    /// Adds a switch: time, state, who comes; or a wakeup: time, who, where.
    fn add(&mut self, waking: bool, at: u64, state_or_cpu: u64, pid: u64) {
        let columns = if waking { &mut self.waking } else { &mut self.switch };
        let last = std::mem::replace(&mut self.last[usize::from(waking)], at);
        varint(&mut columns[0], at - last);
        varint(&mut columns[1], state_or_cpu);
        varint(&mut columns[2], pid);
        varint(&mut columns[3], 120);
        varint(&mut columns[4], pid % 40);
        self.events += 1;
    }

    fn take(&mut self, cpu: u64, freqs: &mut Vec<u8>) -> Vec<u8> {
        let mut compact = Vec::new();
        (0..40).for_each(|n| bytes(&mut compact, 5, format!("worker-thread-{n}").as_bytes()));
        for (field, column) in [1, 2, 3, 4, 6].into_iter().zip(&self.switch) {
            bytes(&mut compact, field, column);
        }
        for (field, column) in [7, 9, 8, 10, 11].into_iter().zip(&self.waking) {
            bytes(&mut compact, field, column);
        }
        *self = Compact::default();
        let mut bundle = Vec::new();
        number(&mut bundle, 1, cpu);
        bundle.append(freqs);
        bytes(&mut bundle, 4, &compact);
        let mut packet = Vec::new();
        bytes(&mut packet, 1, &bundle);
        number(&mut packet, 10, 1);
        let mut all = Vec::new();
        bytes(&mut all, 1, &packet);
        all
    }
}

fn write(mut out: impl Write, size: u64) -> io::Result<()> {
    let mut dice = Dice(1);
    let (mut written, mut round) = (0, 0);
    let mut at = [1_000_000_000_u64; CPUS as usize];
    while written < size {
        round += 1;
        for cpu in 0..CPUS {
            let (mut compact, mut freqs) = (Compact::default(), Vec::new());
            let at = &mut at[cpu as usize];
            while *at < 1_000_000_000 + round * ROUND {
                *at += 5_000 + dice.below(60_000);
                let task = 1000 + dice.below(200) * CPUS + cpu;
                match dice.below(40) {
                    0 => {
                        let (mut event, mut freq) = (Vec::new(), Vec::new());
                        number(&mut freq, 1, 300_000 + 100_000 * dice.below(20));
                        number(&mut freq, 2, cpu / 4 * 4);
                        number(&mut event, 1, *at);
                        number(&mut event, 2, 0);
                        bytes(&mut event, 11, &freq);
                        bytes(&mut freqs, 2, &event);
                    }
                    1..=15 => compact.add(true, *at, cpu, task),
                    16..=27 => compact.add(false, *at, dice.below(2), task),
                    _ => compact.add(false, *at, 1, 0),
                }
                if compact.events == BUNDLE {
                    let packet = compact.take(cpu, &mut freqs);
                    written += packet.len() as u64;
                    out.write_all(&packet)?;
                }
            }
            let packet = compact.take(cpu, &mut freqs);
            written += packet.len() as u64;
            out.write_all(&packet)?;
        }
    }
    out.flush()
}

/// Counts what comes.
#[derive(Default)]
struct Count {
    events: u64,
    switches: u64,
    last: Instant,
}

impl TraceSink for Count {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event) {
        assert!(at >= self.last, "times go back");
        self.last = at;
        self.events += 1;
        self.switches += u64::from(matches!(event, Event::Switch { .. }));
    }
    fn end(&mut self, _: Instant) {}
    fn listens(&self) -> Hears {
        Hears::Figures
    }
}

fn read(file: &Path) -> Result<(), Box<dyn Error>> {
    let mut count = Count::default();
    let source = Source::open(file)?;
    let summary = risetime_read::read(&source, &mut count, &Options::default())?;
    let seconds = cpu_seconds()?;
    println!("{}: {} MB", summary.format, fs::metadata(file)?.len() >> 20);
    println!("{} events of the file, {} pushed", summary.records, count.events);
    println!("{} switches, {} threads", count.switches, summary.threads.len());
    println!("{seconds:.2} s CPU time, {:.1} M events/s", summary.records as f64 / seconds / 1e6);
    println!("{} MB at most", peak_kb()? >> 10);
    summary.notes.iter().for_each(|note| println!("note: {note}"));
    Ok(())
}

/// CPU time of this process: user and system.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let rest = stat.rsplit(')').next().unwrap_or("");
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|t| t.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}

/// The most memory that this process has had, in KB.
fn peak_kb() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0))
}
