//! Values of words on the command line, and what was wanted in place of a word that says nothing.

use super::{Picture, StartUtils};
use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser};
use risetime_analysis::explain::Over;
use risetime_kernel::units::{CpuId, Span};
use risetime_model::parse_micros;
use risetime_model::policy::parse_setting;
use risetime_model::settings::Value;
use risetime_model::workload::Change;
use risetime_sim::cause::{CAUSES, Cause};
use std::path::PathBuf;

/// Activations that are to be explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Chosen {
    /// Choice by rank or number.
    Over(Over),
    /// Activations of a trace that took longer than this, in ns.
    Longer(u64),
}

/// A stretch of a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// Begin in ns; 0 if it was left out.
    pub(crate) from: u64,
    /// End in ns; `None`: the trace's.
    pub(crate) to: Option<u64>,
}

/// Jobs of a trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    /// The task or the slices.
    pub(crate) name: String,
    /// The period in ns; `None`: it is to be found.
    pub(crate) period: Option<u64>,
}

/// CPUs, ascending.
#[derive(Clone, Debug)]
pub(crate) struct CpuList(pub(crate) Vec<CpuId>);

pub(super) fn utilisation(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(u) if u > 0.0 && u <= 1000.0 => Ok(u),
        _ => Err("wanted a number above 0, such as 2.5".into()),
    }
}

/// Reads a percentage, in 10⁻³.
pub(super) fn permille(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok((percent * 10.0).round() as u64),
        _ => Err("wanted % from 0 to 1000, such as 2.5".into()),
    }
}

/// The name of an importer.
pub(super) fn importer() -> PossibleValuesParser {
    let all = risetime_host::import::REGISTRY.iter();
    PossibleValuesParser::new(all.map(|i| PossibleValue::new(i.name).help(i.doc)))
}

/// A file to write; `-` is what others call standard output, which has what is printed.
pub(super) fn file(name: &str) -> Result<PathBuf, String> {
    match name {
        "-" => {
            Err("wanted a file's name: standard output has what is printed; ./- is a file".into())
        }
        name => Ok(name.into()),
    }
}

/// CPUs as the kernel lists them: `0-2,5`.
pub(super) fn cpus(text: &str) -> Result<CpuList, String> {
    let wanted = || "wanted CPUs, such as 2-3 or 0,2-3".to_string();
    let number = |s: &str| s.parse::<u32>().ok().filter(|n| *n < 1024).ok_or_else(wanted);
    let mut all = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(wanted());
        }
        all.extend((low..=high).map(CpuId));
    }
    all.sort_unstable();
    all.dedup();
    Ok(CpuList(all))
}

/// `LOW-HIGH` in %.
pub(super) fn percents(text: &str) -> Result<(u64, u64), String> {
    let wanted =
        || "wanted two whole numbers from 1 to 1000, the lower one first: 60-100".to_string();
    let number = |s: &str| s.parse().ok().filter(|n| (1..=1000).contains(n)).ok_or_else(wanted);
    let (low, high) = text.split_once('-').ok_or_else(wanted)?;
    let (low, high) = (number(low)?, number(high)?);
    if low <= high { Ok((low, high)) } else { Err(wanted()) }
}

pub(super) fn picture(name: &str) -> Result<Picture, String> {
    let path = PathBuf::from(name);
    match path.extension().and_then(|e| e.to_str()) {
        Some("svg") => Ok(Picture { path, png: false }),
        Some("png") => Ok(Picture { path, png: true }),
        _ => Err("wanted a name that ends in .svg or .png".into()),
    }
}

pub(super) fn hz() -> RangedU64ValueParser<u32> {
    let (low, high) = risetime_model::platform::HZ;
    RangedU64ValueParser::new().range(u64::from(low)..=u64::from(high))
}

/// Reads which activations or jobs are meant.
pub(super) fn over(text: &str) -> Result<Over, String> {
    let wrong = || format!("found `{text}`, wanted all, worst, worst:5 (%), or a number from 0");
    match text.split_once(':') {
        None if text == "all" => Ok(Over::All),
        None if text == "worst" => Ok(Over::Worst(0.01)),
        None => text.parse().map(Over::One).map_err(|_| wrong()),
        Some(("worst", percent)) => match percent.trim_end_matches('%').parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Over::Worst(percent / 100.0)),
            _ => Err(wrong()),
        },
        Some(_) => Err(wrong()),
    }
}

/// A time to be simulated.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|s| (0.0..=1e9).contains(s));
    seconds.ok_or_else(|| format!("found `{text}`, wanted seconds, 0 to 1e9"))
}

pub(super) fn start_utils(text: &str) -> Result<StartUtils, String> {
    if text == "own" {
        return Ok(StartUtils(Vec::new()));
    }
    let util = |part: &str| match part.trim().parse() {
        Ok(util) if util <= 1024 => Ok(util),
        _ => Err(format!("found `{part}`, wanted utils from 0 to 1024 with commas, or own")),
    };
    let mut utils: Vec<u64> = text.split(',').map(util).collect::<Result<_, _>>()?;
    utils.sort_unstable();
    utils.dedup();
    if utils.len() > 64 { Err("wanted at most 64".into()) } else { Ok(StartUtils(utils)) }
}

pub(super) fn cause(text: &str) -> Result<Cause, String> {
    Cause::named(text).ok_or_else(|| {
        let known: Vec<&str> = CAUSES.iter().map(|c| c.name).collect();
        format!("unknown cause, wanted one of {}", known.join(", "))
    })
}

pub(super) fn phase(text: &str) -> Result<Span, String> {
    let span = parse_micros(text).filter(|phase| *phase <= MAX_PHASE);
    span.ok_or_else(|| "wanted µs from 0 to 60000000, with at most 3 decimals".into())
}

/// The latest start, as a minute.
const MAX_PHASE: Span = Span::from_ms(60_000);

pub(super) fn change(text: &str) -> Result<Change, String> {
    let parts = text.split_once('=').filter(|(key, value)| key.contains('.') && !value.is_empty());
    let (key, value) = parts.ok_or("wanted TASK.KEY=VALUE, as in ui.util_min=512")?;
    Ok(Change { key: key.into(), value: value.into() })
}

/// `NAME=VALUE` of a placeholder, `__NAME__`.
pub(super) fn placeholder(text: &str) -> Result<Change, String> {
    let name = |name: &str| {
        let name = name.trim_start_matches("__").trim_end_matches("__");
        let fine = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit();
        let parts = |name: &str| name.split('_').all(|p| !p.is_empty() && p.chars().all(fine));
        parts(name).then(|| format!("__{name}__"))
    };
    let parts = text.split_once('=').and_then(|(key, value)| Some((name(key)?, value)));
    let (key, value) = parts.ok_or("wanted NAME=VALUE in capitals, as in DURATION=5")?;
    Ok(Change { key, value: value.into() })
}

pub(super) fn setting(text: &str) -> Result<(String, Value), String> {
    parse_setting(text, text).map_err(|e| e.what)
}

/// A stretch of a trace: `A..B` in seconds.
pub(super) fn window(text: &str) -> Result<Window, String> {
    let wrong = || format!("found `{text}`, wanted seconds A..B, A.. or ..B, B after A");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let ns = |text: &str| match text.trim().parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok((seconds * 1e9).round() as u64),
        _ => Err(wrong()),
    };
    let from = if from.is_empty() { 0 } else { ns(from)? };
    let to = if to.is_empty() { None } else { Some(ns(to)?) };
    match to.is_none_or(|to| to > from) {
        true => Ok(Window { from, to }),
        false => Err(wrong()),
    }
}

/// Jobs of a trace: a name, and a period if it is known.
pub(super) fn job(text: &str) -> Result<Job, String> {
    let Some((name, period)) = text.rsplit_once('=') else {
        return Ok(Job { name: text.into(), period: None });
    };
    let period = longer(period).map_err(|e| format!("period: {e}"))?;
    Ok(Job { name: name.into(), period: Some(period) })
}

/// A time with its unit, in ns: `16.6ms`, `500us`.
pub(super) fn longer(text: &str) -> Result<u64, String> {
    let wrong = || format!("found `{text}`, wanted a time with its unit: 16.6ms, 500us, 1s");
    let units = [("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("s", 1e9)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))
        .ok_or_else(wrong)?;
    let number = number.trim().parse::<f64>().ok().filter(|n| (0.0..=1e9).contains(n));
    number.map(|n| (n * unit).round() as u64).filter(|ns| *ns > 0).ok_or_else(wrong)
}

/// Activations to explain; those of a trace may be chosen by their length.
pub(super) fn chosen(text: &str) -> Result<Chosen, String> {
    match text.ends_with('s') {
        true => longer(text).map(Chosen::Longer),
        false => over(text).map(Chosen::Over).map_err(|e| format!("{e}, or a time (16.6ms)")),
    }
}
