//! `policy`, `priority` and `dl-…`: under which class a task or phase runs.
//!
//! ```text
//! policy          priority                 dl-runtime   dl-period    dl-deadline   (µs)
//! SCHED_OTHER     nice -20 … 19, else 0    a slice of its own (0.1 … 100 ms; none: the base slice)
//! SCHED_BATCH     nice -20 … 19, else 0    likewise
//! SCHED_IDLE      nice, without effect     -
//! SCHED_HIGH      nice -20 … 19, else 0    likewise; not rt-app's, and no stock kernel's
//! SCHED_FIFO, _RR 1 … 99, else 10          -
//! SCHED_OVERCOMMIT 0, or `share` in %      needed       needed; 10 ms beside `share`; no stock kernel's
//! SCHED_DEADLINE  0                        needed       dl-runtime   dl-period
//! ```
//!
//! rt-app's names and defaults: a task begins under `global.default_policy`, a phase without
//! `policy` keeps the one it finds, and a `policy` without `priority` resets the priority.
//! `dl-reclaim` (`SCHED_FLAG_RECLAIM`) is in rt-app's examples; its releases ignore it. `period` and
//! `deadline` are older names of `dl-period` and `dl-deadline`.
//!
//! Source: rt-app, `src/rt-app_parse_config.c:parse_sched_data`; which parameters of a deadline
//! the kernel takes: kernel/sched/deadline.c:__checkparam_dl.

use super::json::{MAX_US, Reader};
use super::{Attr, Policy, Repeat};
use crate::InputError;
use crate::input::{nearest, one_line};
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use risetime_kernel::units::Span;

/// Kind of a policy, without its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    High,
    Overcommit,
    Deadline,
}

const KINDS: [(&str, Kind); 8] = [
    ("SCHED_OTHER", Kind::Other),
    ("SCHED_BATCH", Kind::Batch),
    ("SCHED_IDLE", Kind::Idle),
    ("SCHED_FIFO", Kind::Fifo),
    ("SCHED_RR", Kind::Rr),
    ("SCHED_HIGH", Kind::High),
    ("SCHED_OVERCOMMIT", Kind::Overcommit),
    ("SCHED_DEADLINE", Kind::Deadline),
];

/// rt-app's priority of a real-time task that names none.
const DEFAULT_RT_PRIORITY: i64 = 10;
/// Shortest runtime of a deadline task: 1 << DL_SCALE ns, in whole µs.
const MIN_DL_RUNTIME_US: u64 = 2;
/// `sched_deadline_period_min_us` and `_max_us`.
const DL_PERIOD_US: (u64, u64) = (100, 1 << 22);
/// Period of a share, unless `dl-period` says another.
const SHARE_PERIOD_US: u64 = 10_000;
/// A slice that a task asks for itself is between these (kernel/sched/syscalls.c:__setparam_fair
/// would move others to the nearest).
const SLICE_US: (u64, u64) = (100, 100_000);

/// Statements of a task's or phase's own keys on its class, not yet settled.
#[derive(Default)]
pub(super) struct Said {
    policy: Option<(Kind, Range)>,
    priority: Option<(i64, Range)>,
    runtime: Option<(Span, Range)>,
    period: Option<(Span, Range)>,
    deadline: Option<(Span, Range)>,
    reclaim: Option<(bool, Range)>,
    share: Option<(i64, Range)>,
}

/// A hint that names the policy to which the key belongs.
fn belongs(key: &str) -> &'static str {
    if key == "share" { "it belongs to SCHED_OVERCOMMIT" } else { "it belongs to SCHED_DEADLINE" }
}

impl Kind {
    fn name(self) -> &'static str {
        KINDS.iter().find(|(_, k)| *k == self).map_or("SCHED_OTHER", |(name, _)| name)
    }
}

impl Said {
    fn is_empty(&self) -> bool {
        self.policy.is_none() && self.priority.is_none() && self.of_deadline().is_none()
    }

    /// Whether it is of SCHED_DEADLINE, by its own word or by `default`, and says no runtime: then `runtime` is
    /// that, as before there was `dl-runtime`.
    pub(super) fn lacks_runtime(&self, default: Kind) -> bool {
        let kind = self.policy.map_or(default, |(kind, _)| kind);
        kind == Kind::Deadline && self.runtime.is_none()
    }

    /// The first of the `dl-` keys (or `share`) that is written, and where.
    fn of_deadline(&self) -> Option<(&'static str, Range)> {
        let at = |v: &Option<(Span, Range)>| v.map(|(_, at)| at);
        at(&self.runtime)
            .map(|at| ("dl-runtime", at))
            .or(at(&self.period).map(|at| ("dl-period", at)))
            .or(at(&self.deadline).map(|at| ("dl-deadline", at)))
            .or(self.reclaim.map(|(_, at)| ("dl-reclaim", at)))
            .or(self.share.map(|(_, at)| ("share", at)))
    }
}

impl<'a> Reader<'a> {
    /// The policy that a `policy` or `default_policy` names.
    pub(super) fn policy(&self, prop: &ObjectProp<'a>, what: &str) -> Result<Kind, InputError> {
        let found = self.string(prop, what)?;
        KINDS.iter().find(|(name, _)| *name == found).map(|(_, kind)| *kind).ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
            let text = format!(
                "{what}: `{}` is {}: no such policy, wanted {}",
                prop.name.as_str(),
                one_line(found),
                names.join(", ")
            );
            let e = self.error(&prop.value, text);
            match nearest(found, &names) {
                Some(name) => e.hint(format!("did you mean `{name}`?")),
                None => e,
            }
        })
    }

    /// Reads one of the keys of [`Said`].
    pub(super) fn say(
        &self,
        key: &str,
        prop: &ObjectProp<'a>,
        what: &str,
        said: &mut Said,
    ) -> Result<(), InputError> {
        let at = prop.value.range();
        let span = || -> Result<(Span, Range), InputError> {
            let us = self.whole(&prop.value, key, what, 1..=MAX_US, " µs")?;
            Ok((Span::from_us(us as u64), at))
        };
        match key {
            "policy" => said.policy = Some((self.policy(prop, what)?, at)),
            "priority" => said.priority = Some((self.int(prop, what, -20..=99)?, at)),
            "dl-runtime" => said.runtime = Some(span()?),
            "dl-period" => said.period = Some(span()?),
            "dl-deadline" => said.deadline = Some(span()?),
            "share" => said.share = Some((self.int(prop, what, 1..=100)?, at)),
            _ => match &prop.value {
                Value::BooleanLit(b) => said.reclaim = Some((b.value, at)),
                other => return Err(self.wrong(prop, what, other, "true or false")),
            },
        }
        Ok(())
    }

    /// Puts what a task and its phases say into their attributes; `default`: `default_policy`.
    ///
    /// Errors: parameters that the policy in force has not or does not take; a phase whose
    /// priority would mean different things in the first round and when the loop comes round.
    pub(super) fn settle(
        &self,
        (default, repeat, at_task): (Kind, Repeat, Range),
        task: (&Said, &mut Attr, &str),
        phases: &mut [(Said, &mut Attr, String)],
    ) -> Result<(), InputError> {
        let (said, attr, what) = task;
        let begins = said.policy.map_or(default, |(kind, _)| kind);
        let named = said.policy.is_some() || default != Kind::default();
        if named || !said.is_empty() {
            self.settle_one(said, begins, named, attr, (what, at_task))?;
        }
        let last = |from: Kind, phases: &[(Said, &mut Attr, String)]| {
            phases.iter().rev().find_map(|(said, ..)| said.policy).map_or(from, |(kind, _)| kind)
        };
        let round = if repeat == Repeat::Times(1) { begins } else { last(begins, phases) };
        let (mut first, mut later) = (begins, round);
        for (said, attr, what) in phases {
            if let Some((kind, _)) = said.policy {
                (first, later) = (kind, kind);
            }
            if said.is_empty() {
                continue;
            }
            if first != later {
                let at = said.priority.map_or(said.of_deadline().map(|(_, at)| at), |p| Some(p.1));
                let text = format!(
                    "{what}: is under {} at first and under {} when the loop comes round, so that \
                     this would mean two things; wanted a `policy` of its own",
                    first.name(),
                    later.name()
                );
                return Err(self.error(&at.unwrap_or(at_task), text));
            }
            self.settle_one(said, first, said.policy.is_some(), attr, (what, at_task))?;
        }
        Ok(())
    }

    /// `named`: the policy is set anew, and with it what is not said.
    fn settle_one(
        &self,
        said: &Said,
        kind: Kind,
        named: bool,
        attr: &mut Attr,
        (what, at_task): (&str, Range),
    ) -> Result<(), InputError> {
        let name = kind.name();
        if let (Some((key, at)), Kind::Idle | Kind::Fifo | Kind::Rr) = (said.of_deadline(), kind) {
            let text = format!("{what}: `{key}` has no meaning under {name}");
            return Err(self.error(&at, text).hint(belongs(key)));
        }
        let within = |least: i64, most: i64| match said.priority {
            Some((n, at)) if n < least || n > most => {
                let wanted = match kind {
                    Kind::Overcommit => "0: shares decide".to_string(),
                    Kind::Deadline => "0: deadlines decide".to_string(),
                    Kind::Fifo | Kind::Rr => format!("a priority from {least} to {most}"),
                    _ => format!("a nice value from {least} to {most}"),
                };
                Err(self
                    .error(&at, format!("{what}: `priority` is {n} under {name}, wanted {wanted}")))
            }
            other => Ok(other.map(|(n, _)| n)),
        };
        attr.policy = match kind {
            Kind::Other | Kind::Batch | Kind::Idle | Kind::High => {
                attr.nice = within(-20, 19)?.or(named.then_some(0)).map(|n| n as i8);
                let slice = self.slice(said, name, what)?;
                (named || slice.is_some()).then_some(match kind {
                    Kind::Other => Policy::Other { slice },
                    Kind::Batch => Policy::Batch { slice },
                    Kind::High => Policy::High { slice },
                    _ => Policy::Idle,
                })
            }
            Kind::Fifo | Kind::Rr => {
                let priority = within(1, 99)?.unwrap_or(DEFAULT_RT_PRIORITY) as u8;
                Some(match kind {
                    Kind::Fifo => Policy::Fifo { priority },
                    _ => Policy::Rr { priority },
                })
            }
            Kind::Overcommit => {
                within(0, 0)?;
                Some(self.overcommit(said, at_task, what)?)
            }
            Kind::Deadline => {
                within(0, 0)?;
                if let Some((_, at)) = said.share {
                    let text = format!("{what}: `share` has no meaning under {name}");
                    return Err(self.error(&at, text).hint(belongs("share")));
                }
                Some(self.deadline(said, at_task, what)?)
            }
        };
        Ok(())
    }

    /// The slice that a fair task asks for.
    fn slice(&self, said: &Said, name: &str, what: &str) -> Result<Option<Span>, InputError> {
        let others = Said { reclaim: said.reclaim, share: said.share, ..Said::default() };
        let others = Said { period: said.period, deadline: said.deadline, ..others };
        if let Some((key, at)) = others.of_deadline() {
            let text = format!("{what}: `{key}` has no meaning under {name}");
            return Err(self.error(&at, text).hint(belongs(key)));
        }
        let Some((slice, at)) = said.runtime else { return Ok(None) };
        let (least, most) = SLICE_US;
        if slice < Span::from_us(least) || slice > Span::from_us(most) {
            let found = slice.0 / 1000;
            let text = format!(
                "{what}: `dl-runtime` is {found}, wanted a slice of {least} to {most} µs under {name}"
            );
            return Err(self.error(&at, text));
        }
        Ok(Some(slice))
    }

    /// The reservation that a task of SCHED_OVERCOMMIT asks for.
    fn overcommit(&self, said: &Said, at_task: Range, what: &str) -> Result<Policy, InputError> {
        let others = Said { deadline: said.deadline, reclaim: said.reclaim, ..Said::default() };
        if let Some((key, at)) = others.of_deadline() {
            let text = format!("{what}: `{key}` has no meaning under SCHED_OVERCOMMIT");
            return Err(self.error(&at, text).hint(belongs(key)));
        }
        let period = said.period.map(|(period, _)| period);
        let named = said.policy.map(|(_, at)| at);
        let (runtime, period, at) = match (said.share, said.runtime) {
            (Some((_, at)), Some(_)) => {
                let text = format!("{what}: `share` and `dl-runtime` say the same");
                return Err(self.error(&at, text).hint("leave one of them out"));
            }
            (Some((percent, at)), None) => {
                let period = period.unwrap_or(Span::from_us(SHARE_PERIOD_US));
                (Span(period.0 / 100 * percent as u64), period, at)
            }
            (None, Some((runtime, at))) => (runtime, period.unwrap_or(runtime), at),
            (None, None) => {
                let text = format!("{what}: SCHED_OVERCOMMIT needs a `share`, or a `dl-runtime`");
                return Err(self.error(&named.unwrap_or(at_task), text));
            }
        };
        let (us, (least, most)) = (period.0 / 1000, DL_PERIOD_US);
        let fault = if runtime > period {
            Some(format!("{} µs in each {us} µs are more than a CPU", runtime.0 / 1000))
        } else if us < least || us > most {
            Some(format!("a period of {us} µs, wanted {least} to {most} µs (`dl-period`)"))
        } else {
            None
        };
        match fault {
            Some(text) => Err(self.error(&at, format!("{what}: {text}"))),
            None => Ok(Policy::Overcommit { runtime, period }),
        }
    }

    /// The parameters of a deadline task, such as the kernel takes.
    fn deadline(&self, said: &Said, at_task: Range, what: &str) -> Result<Policy, InputError> {
        let Some((runtime, at)) = said.runtime else {
            let at = said.policy.map_or(said.of_deadline().map(|(_, at)| at), |p| Some(p.1));
            let text = format!("{what}: SCHED_DEADLINE needs a `dl-runtime`");
            return Err(self.error(&at.unwrap_or(at_task), text));
        };
        let (period, period_at) = said.period.unwrap_or((runtime, at));
        let (deadline, deadline_at) = said.deadline.unwrap_or((period, period_at));
        let us = |s: Span| s.0 / 1000;
        let fault = if us(runtime) < MIN_DL_RUNTIME_US {
            Some((
                at,
                format!("`dl-runtime` is {}, wanted at least {MIN_DL_RUNTIME_US} µs", us(runtime)),
            ))
        } else if us(period) < DL_PERIOD_US.0 || us(period) > DL_PERIOD_US.1 {
            Some((
                period_at,
                format!(
                    "a period of {} µs, wanted {} to {} µs (`dl-period`)",
                    us(period),
                    DL_PERIOD_US.0,
                    DL_PERIOD_US.1
                ),
            ))
        } else if deadline < runtime {
            let text = format!(
                "a runtime of {} µs does not fit before a deadline of {} µs",
                us(runtime),
                us(deadline)
            );
            Some((deadline_at, text))
        } else if period < deadline {
            let text = format!(
                "a deadline of {} µs is after the end of a period of {} µs",
                us(deadline),
                us(period)
            );
            Some((deadline_at, text))
        } else {
            None
        };
        if let Some((at, text)) = fault {
            return Err(self.error(&at, format!("{what}: {text}")));
        }
        let reclaim = said.reclaim.is_some_and(|(yes, _)| yes);
        Ok(Policy::Deadline { runtime, deadline, period, reclaim })
    }
}
