//! `risetime reproduce`: the experiments of a study, run from many start phases, and every
//! published number beside ours.
//!
//! ```text
//! Study ── figure ── Request ── phases, on all cores ──> RunResult + Timeline, one a phase
//!             ├ list ── row ── measure ──> one number a phase ── judge ──> JudgedRow
//!             └ table ── cell ── metric ──> its median, and the checks of all cells   (table.rs, check.rs)
//! ```
//!
//! Threads only share out the phases; results are put back in the order of the phases, so that the
//! same study gives the same bytes on any number of cores.

mod activations;
mod cells;
mod check;
mod climb;
mod curves;
mod measure;
mod score;
mod signals;
mod steady;
mod table;
mod told_apart;

pub use told_apart::{ToldApart, told_apart};

use climb::Climb;
use measure::{Phases, UtilEst};
use risetime_analysis::Options;
use risetime_analysis::metric::Metric;
use risetime_analysis::study::{
    Bound, Counterfactual, Elsewhere, JudgedRow, Reproduced, ReproducedFigure, TradeOff, judge,
};
use risetime_kernel::units::{Capacity, Instant, MicroWatts, Span};
use risetime_lab::Request;
use risetime_lab::parallel;
use risetime_lab::phase_spans;
use risetime_lab::{Run, run};
use risetime_model::study::{
    At, Figure, List, Origin, Quantity, Relation, Row, Setup, Study, Wrong,
};
use risetime_model::workload::Change;
use risetime_model::{Experiment, InputError, Platform};
use risetime_sim::Simulator;
use risetime_trace::{RunError, Tee};
use signals::Signals;
use std::sync::Arc;
use steady::{Grid, Steady};

/// Start phases of each experiment.
pub const STUDY_PHASES: u32 = 64;

/// Runs the study's experiments from `phases` start phases each and judges every row. `progress`
/// hears the id of each figure before it is run.
///
/// Errors: a platform, workload, policy or setting that does not exist; the simulator's.
pub fn reproduce(
    study: &Study,
    phases: u32,
    mut progress: impl FnMut(&str),
) -> Result<Reproduced, RunError> {
    let mut figures = Vec::new();
    for figure in &study.figures {
        progress(&figure.id);
        figures.push(reproduce_figure(figure, phases)?);
    }
    Ok(Reproduced {
        study: study.name.clone(),
        about: study.about.clone(),
        source: study.source.clone(),
        phases,
        figures,
    })
}

/// Runs the study under a wrong policy, as [`reproduce`] does under its own: what holds under it,
/// too, tells little of the policies.
///
/// Errors: those of [`reproduce`].
pub fn reproduce_against(
    study: &Study,
    wrong: &Wrong,
    phases: u32,
    progress: impl FnMut(&str),
) -> Result<Reproduced, RunError> {
    reproduce(&study.against(wrong), phases, progress)
}

/// Checks that every experiment of the study could be run.
///
/// Errors: a platform, workload, policy or setting that does not exist.
pub fn check_study(study: &Study) -> Result<(), InputError> {
    for figure in &study.figures {
        let Some(setup) = &figure.setup else { continue };
        let place = place(figure);
        for setup in figure.instead.iter().map(|i| &i.setup).chain([setup]) {
            experiment(setup, &setup.policy, &place)?;
        }
        for name in figure.lists.iter().filter_map(|l| l.metric.as_ref()) {
            let e = experiment(setup, &setup.policy, &place)?;
            let of_place =
                |e: InputError| InputError { place: format!("{place}: {}", e.place), ..e };
            Metric::new(name).check(&e.workload).map_err(of_place)?;
        }
        let scores = figure.lists.iter().filter(|l| l.quantity.by_policy());
        for row in scores.flat_map(|l| &l.rows) {
            experiment(setup, &row.policy(), &place)?;
        }
        for policy in figure.lists.iter().filter_map(|l| l.policy.as_ref()) {
            experiment(setup, policy, &place)?;
        }
        let Some(of_cases) = &figure.table else { continue };
        for setup in figure.instead.iter().map(|i| &i.setup).chain([setup]) {
            table::check_table(figure, of_cases, &request(setup, &setup.policy))?;
        }
    }
    Ok(())
}

fn place(figure: &Figure) -> String {
    format!("{}: figure {}", figure.at, figure.id)
}

fn reproduce_figure(figure: &Figure, phases: u32) -> Result<ReproducedFigure, RunError> {
    let place = place(figure);
    let mut out = ReproducedFigure {
        id: figure.id.clone(),
        place: figure.place.clone(),
        about: figure.about.clone(),
        command: figure.setup.as_ref().map(|s| command(figure, s)).unwrap_or_default(),
        ..ReproducedFigure::default()
    };
    let Measured { rows, runs, trade_offs } =
        measured(figure, figure.setup.as_ref(), &place, phases)?;
    out.trade_offs = trade_offs;
    out.curves = runs.as_ref().map(|r| curves::pairs(figure, r)).unwrap_or_default();
    out.climb = runs.as_ref().and_then(|r| curves::climbed(figure, r, &rows));
    out.rows = rows;
    let of_lists = out.rows.len();
    let mut changed = Vec::new();
    if let Some((of_cases, setup)) = figure.table.as_ref().zip(figure.setup.as_ref()) {
        let base = request(setup, &setup.policy);
        let instead: Vec<Request> =
            figure.instead.iter().map(|i| request(&i.setup, &i.setup.policy)).collect();
        let found = table::reproduced(figure, of_cases, &base, &instead, phases)?;
        (out.cells, out.command, changed) = (Some(found.cells), found.command, found.changed);
        out.rows.extend(found.rows);
    }
    let mut changed = changed.into_iter();
    for instead in &figure.instead {
        let asks = |r: &Row| r.instead.as_ref() == Some(&instead.id);
        let keys: Vec<bool> = figure.lists.iter().flat_map(|l| &l.rows).map(asks).collect();
        let of_table = changed.next();
        let asked = |at: usize| keys.get(at).copied().unwrap_or(of_table.is_some());
        let missing = |(at, row): (usize, &JudgedRow)| row.misses() && asked(at);
        if !out.rows.iter().enumerate().any(missing) {
            continue;
        }
        let mut with = match of_lists {
            0 => Vec::new(),
            _ => measured(figure, Some(&instead.setup), &place, phases)?.rows,
        };
        with.extend(of_table.iter().flatten().cloned());
        out.elsewhere.push(Elsewhere::of(&instead.about, &out.rows, &with));
        for (at, (row, changed)) in out.rows.iter_mut().zip(with).enumerate() {
            let (holds, tolerance) = row.mended_by(&changed);
            // A table's row may say by itself why it misses.
            let says = holds || row.note.is_empty() || at < of_lists;
            if row.misses() && asked(at) && says {
                let found = Counterfactual {
                    about: instead.about.clone(),
                    measured: changed.measured,
                    tolerance,
                    holds,
                };
                nearest(row, found);
            }
        }
    }
    Ok(out)
}

/// Gives a row that misses the changed experiment that argues it: one under which it holds, or that comes nearer.
fn nearest(row: &mut JudgedRow, found: Counterfactual) {
    let published = row.published;
    let far = |c: &Counterfactual| c.measured.map_or(f64::INFINITY, |m| (m - published).abs());
    let nearer = |known: &Counterfactual| (!found.holds, far(&found)) < (!known.holds, far(known));
    if row.instead.as_ref().is_none_or(nearer) {
        row.instead = Some(found);
    }
}

/// Finding of an experiment on a figure.
struct Measured {
    /// Every row, in order.
    rows: Vec<JudgedRow>,
    /// The figure's runs, unless all rows are of others.
    runs: Option<Phases>,
    trade_offs: Vec<TradeOff>,
}

fn measured(
    figure: &Figure,
    setup: Option<&Setup>,
    place: &str,
    phases: u32,
) -> Result<Measured, RunError> {
    let own = figure.lists.iter().any(|l| !l.quantity.by_policy() && l.policy.is_none());
    let runs = match setup {
        Some(setup) if own => {
            Some(all_phases(&experiment(setup, &setup.policy, place)?, phases, figure)?)
        }
        _ => None,
    };
    let mut all = Vec::new();
    let under = |policy: &str| match setup {
        Some(setup) => all_phases(&experiment(setup, policy, place)?, phases, figure),
        None => Err(InputError::new(place, "no experiment").into()),
    };
    let mut grids = Grids::default();
    for list in &figure.lists {
        match list.quantity {
            Quantity::Score => all.extend(score::rows(figure, list, &under)?),
            Quantity::UtilEst => {
                for row in &list.rows {
                    let runs = under(&row.policy())?;
                    let digit = row.published.last_digit();
                    all.push(judged_row(figure, list, row, digit, 0.0, &runs.util_est));
                }
            }
            Quantity::Figure => {
                let metric = Metric::new(list.metric.as_deref().unwrap_or_default());
                for row in &list.rows {
                    let of = |run: &Run| Ok(metric.of(&run.result)?.0);
                    let runs = under(&row.policy())?;
                    let numbers =
                        runs.runs.iter().map(of).collect::<Result<Vec<_>, InputError>>()?;
                    let digit = row.published.last_digit();
                    all.push(judged_row(figure, list, row, digit, 0.0, &numbers));
                }
            }
            q if q.is_signal() => {
                for row in &list.rows {
                    let runs = under(&row.policy())?;
                    let tick = signals::of_a_tick(list, &runs.signals, runs.tick_ms);
                    let numbers: Vec<_> = runs.signals.iter().map(|s| s.number(list)).collect();
                    let digit = row.published.last_digit();
                    all.push(judged_row(figure, list, row, digit, tick, &numbers));
                }
            }
            q if q.is_grid() => {
                let setup = setup.ok_or_else(|| InputError::new(place, "no experiment"))?;
                for row in &list.rows {
                    let steady = grids.under(&row.policy(), setup, place, phases)?;
                    let digit = if q.is_bound() { 0.0 } else { row.published.last_digit() };
                    let numbers = steady.numbers(q, list.reading);
                    all.push(judged_row(figure, list, row, digit, 0.0, &numbers));
                }
            }
            _ => match &list.policy {
                Some(policy) => all.extend(rows(figure, list, Some(&under(policy)?))),
                None => all.extend(rows(figure, list, runs.as_ref())),
            },
        }
    }
    Ok(Measured { rows: all, runs, trade_offs: grids.trade_offs(figure) })
}

/// A figure's grid of periodic tasks under each policy that a row names, and its own.
#[derive(Default)]
struct Grids {
    base: Option<Grid>,
    /// Policies in the order in which the rows name them.
    under: Vec<(String, Steady)>,
    /// Slack and energy of the figure's own policy, then of those that a row asks for.
    trade_offs: Vec<TradeOff>,
}

impl Grids {
    fn under(
        &mut self,
        policy: &str,
        setup: &Setup,
        place: &str,
        phases: u32,
    ) -> Result<&Steady, RunError> {
        let run = |policy: &str| Grid::run(&experiment(setup, policy, place)?, &setup.grid, phases);
        let at = match self.under.iter().position(|(name, _)| name == policy) {
            Some(at) => at,
            None => {
                let base = match &self.base {
                    Some(base) => base,
                    None => {
                        let base = self.base.insert(run(&setup.policy)?);
                        self.trade_offs.push(base.trade_off(&setup.policy));
                        base
                    }
                };
                let ours = if policy == setup.policy { None } else { Some(run(policy)?) };
                let ours = ours.as_ref().unwrap_or(base);
                self.under.push((policy.to_string(), Steady::of(ours, base)));
                if policy != setup.policy {
                    self.trade_offs.push(ours.trade_off(policy));
                }
                self.under.len() - 1
            }
        };
        Ok(&self.under[at].1)
    }

    /// Takes slack and energy of the figure's policies and its own; empty if it asks for none.
    fn trade_offs(self, figure: &Figure) -> Vec<TradeOff> {
        let of = |l: &&List| l.quantity == Quantity::Slack;
        let rows = figure.lists.iter().filter(of).flat_map(|l| &l.rows);
        let asked: Vec<String> = rows.map(Row::policy).collect();
        if asked.is_empty() {
            return Vec::new();
        }
        let own = figure.setup.as_ref().map(|s| s.policy.clone());
        let wanted = |t: &TradeOff| asked.contains(&t.policy) || own.as_ref() == Some(&t.policy);
        self.trade_offs.into_iter().filter(wanted).collect()
    }
}

/// The rows of every quantity that needs no more than the figure's own runs.
fn rows(figure: &Figure, list: &List, runs: Option<&Phases>) -> Vec<JudgedRow> {
    let next = |i: usize| list.rows.get(i + 1);
    let judged = |(i, row): (usize, &Row)| {
        let (samples, tick) = measure::samples(list, row, next(i), runs);
        let exact = list.quantity.is_exact() || list.quantity.is_count();
        let digit = if exact { 0.0 } else { row.published.last_digit() };
        judged_row(figure, list, row, digit, tick, &samples)
    };
    list.rows.iter().enumerate().map(judged).collect()
}

fn judged_row(
    figure: &Figure,
    list: &List,
    row: &Row,
    last_digit: f64,
    tick: f64,
    samples: &[Option<f64>],
) -> JudgedRow {
    let (bound, relation) = match row.relation {
        Relation::Equal => (Bound::Near, ""),
        Relation::AtLeast => (Bound::AtLeast, "≥"),
        Relation::AtMost => (Bound::AtMost, "≤"),
    };
    let (measured, tolerance, holds) = judge(row.published.value, last_digit, tick, bound, samples);
    JudgedRow {
        id: figure.row_id(list, row),
        ours: row.origin == Origin::Ours,
        at: row.at.to_string(),
        list: heading(list),
        published: row.published.value,
        digits: row.published.digits,
        relation,
        measured,
        unit: list.unit(),
        tolerance,
        holds: row.counted.then_some(holds),
        note: match row.note.is_empty() && row.counted && !holds {
            true => list.note.clone(),
            false => row.note.clone(),
        },
        instead: None,
    }
}

fn heading(list: &List) -> String {
    let cpu = list.cpu.map(|cpu| format!(" cpu{cpu}")).unwrap_or_default();
    let policy = list.policy.as_ref().map(|p| format!(" under {p}")).unwrap_or_default();
    let reading = list.said_reading().map(|r| format!(" · {r}")).unwrap_or_default();
    let ms = list.ms.map(|ms| format!(" after {ms} ms")).unwrap_or_default();
    let name = list.metric.as_deref().unwrap_or(list.quantity.as_str());
    format!("{name}{cpu}{ms}{policy}{reading}")
}

/// Lists every util of the figure whose time is asked for.
fn levels(figure: &Figure) -> Vec<u64> {
    let asks = |l: &&List| matches!(l.quantity, Quantity::UtilResidency | Quantity::ReachUtil);
    let number = |r: &Row| match &r.at {
        At::Number(d) => Some(d.value as u64),
        At::Name(_) => None,
    };
    figure.lists.iter().filter(asks).flat_map(|l| l.rows.iter().filter_map(number)).collect()
}

/// The figure's experiment under `policy`; its littles are the platform's.
fn request(setup: &Setup, policy: &str) -> Request {
    let changes = setup.vary.iter().map(|(k, v)| Change { key: k.clone(), value: v.clone() });
    Request {
        policies: vec![policy.to_string()],
        set: setup.set.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
        changes: changes.collect(),
        seconds: setup.ms.map(|ms| ms as f64 / 1000.0),
        ..Request::new(setup.workload.clone(), setup.platform.clone())
    }
}

fn experiment(setup: &Setup, policy: &str, place: &str) -> Result<Experiment, InputError> {
    let mut all = request(setup, policy)
        .experiments()
        .map_err(|e| InputError { place: format!("{place}: {}", e.place), ..e })?;
    let mut e = all.pop().ok_or_else(|| InputError::new(place, "no policy"))?;
    if let Some(capacity) = setup.little {
        e.platform = Arc::new(with_littles(&e.platform, Capacity(capacity)));
        e.settings = risetime_sim::resolve(&e.platform, &e.policy)?;
    }
    Ok(e)
}

/// The platform with this capacity of its smallest CPUs at the same frequencies, and power in
/// proportion: work costs what it did, so that tasks are not placed elsewhere for that.
fn with_littles(platform: &Platform, capacity: Capacity) -> Platform {
    let mut platform = platform.clone();
    let smallest = platform.domains.iter().map(|d| d.capacity).min();
    for domain in platform.domains.iter_mut().filter(|d| Some(d.capacity) == smallest) {
        for opp in &mut domain.opps {
            opp.power = MicroWatts(opp.power.0 * capacity.0 / domain.capacity.0);
        }
        domain.capacity = capacity;
    }
    platform
}

/// The command that shows one of these runs; of several policies that of the first row. Studies are
/// without noise: what a mail's figures have of it is not known.
fn command(figure: &Figure, setup: &Setup) -> String {
    let by_policy = figure.lists.iter().find(|l| l.quantity.by_policy());
    let policy = by_policy
        .and_then(|l| l.rows.first())
        .map_or_else(|| setup.policy.clone(), |r| r.at.to_string());
    let little = setup.little.map(|c| format!("   # and littles of capacity {c}"));
    let set: String = setup.set.iter().map(|(k, v)| format!(" --set {k}={v}")).collect();
    let quoted = |text: String| if text.contains('[') { format!("'{text}'") } else { text };
    let vary = setup.vary.iter().map(|(k, v)| format!(" --vary {}", quoted(format!("{k}={v}"))));
    let set = set + &vary.collect::<String>();
    format!(
        "risetime run {} --platform {} --policy {}{set} --noise off{}",
        setup.workload,
        setup.platform,
        policy,
        little.unwrap_or_default()
    )
}

/// A run, its util_est on average, how that climbs, and other signals.
type Done = (Run, Option<f64>, Climb, Signals);

/// The experiment from start phases 0 … n − 1, on all cores.
fn all_phases(experiment: &Experiment, n: u32, figure: &Figure) -> Result<Phases, RunError> {
    let options = Options { timeline: true, levels: levels(figure), ..Options::default() };
    let tick = experiment.platform.tick();
    let spans: Vec<Span> = phase_spans(tick, n).collect();
    let done = parallel(
        spans.len(),
        |_| (),
        |k| -> Result<Done, RunError> {
            let e = experiment.later(spans[k]);
            let mut util_est = UtilEst::from(Instant(e.duration.0 / 2));
            let mut climb = Climb::default();
            let mut signals = Signals::of(&figure.lists);
            let mut both = Tee(&mut util_est, &mut climb);
            let mut all = Tee(&mut both, &mut signals);
            let run = run(&Simulator, &e, options.clone(), Some(&mut all))?;
            Ok((run, util_est.mean(), climb, signals))
        },
    )?;
    let (mut runs, mut util_est, mut climbs, mut all) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (run, est, climb, signals) in done {
        all.push(signals);
        runs.push(run);
        util_est.push(est);
        climbs.push(climb);
    }
    Ok(Phases {
        runs,
        util_est,
        climbs,
        signals: all,
        platform: experiment.platform.clone(),
        tick_ms: tick.as_ms(),
    })
}
