//! Probes: from one that holds for all releases to a line of `dynamic_events` that this kernel takes.
//!
//! ```text
//! t:GROUP/NAME TRACEPOINT ARGUMENTS          one of the kernel's tracepoints
//! f:GROUP/NAME FUNCTION[%return] ARGUMENTS   entry or return of a function
//!
//! A|B           the first of these names, or arguments' values, that this kernel has
//! NAME=A|       left out where it has none of them
//! {…}           a number from the kernel's types: `Btf::expand`
//! ```
//!
//! Kernels before 6.14 take neither `t:` nor `f:` on arm64. There the same is told by kprobes:
//!
//! ```text
//! t:  p:  at `__traceiter_TRACEPOINT`, which a tracepoint that is switched on calls with the same
//!         arguments behind one of its own; that it is switched on a BPF program sees to that does
//!         nothing
//! f:  p:  at the function, or r: at its return
//! ```
//!
//! with what arguments' values read made from the kernel's types here. Left out: tracepoints in
//! core.c, into whose functions the compiler puts `__traceiter_…`; values
//! that a return reads through the function's arguments, where a kernel (before 6.9) does not keep
//! those; variables (`@`) whose addresses a kernel does not keep.

use crate::btf::{Btf, BtfError};

/// A probe as it is asked for, of whatever release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe<'a> {
    /// `t` or `f`.
    kind: char,
    /// `GROUP/NAME` of the event.
    pub name: &'a str,
    /// Tracepoint or function.
    symbol: &'a str,
    returns: bool,
    /// Name and value of each argument.
    arguments: Vec<(&'a str, &'a str)>,
}

/// A probe by a kprobe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kprobe {
    /// The tracepoint that has to be switched on before.
    pub tracepoint: Option<String>,
    /// Lines to be tried one after the other, the fullest first.
    pub lines: Vec<String>,
}

/// `GROUP/NAME` of a line such as `t:rt/pelt_se pelt_se_tp …`.
pub fn name(line: &str) -> &str {
    let first = line.split(' ').next().unwrap_or_default();
    first.split_once(':').map_or(first, |(_, name)| name)
}

/// The line as it is, where nothing in it depends on the kernel but numbers.
///
/// Errors: a number that the kernel's types do not give.
pub fn plain(line: &str, btf: &Btf<'_>) -> Result<String, BtfError> {
    btf.expand(line)
}

impl<'a> Probe<'a> {
    /// Parses a line such as `t:rt/ovu sched_overutilized_tp ov=overutilized`; `None`: it is no probe of a tracepoint or function.
    pub fn parse(line: &'a str) -> Option<Probe<'a>> {
        let mut words = line.split(' ').filter(|w| !w.is_empty());
        let (kind, name) = words.next()?.split_once(':')?;
        let kind = match kind {
            "t" => 't',
            "f" => 'f',
            _ => return None,
        };
        let symbol = words.next()?;
        let (symbol, returns) =
            symbol.strip_suffix("%return").map_or((symbol, false), |s| (s, true));
        let arguments = words.map(|w| w.split_once('=')).collect::<Option<Vec<_>>>()?;
        Some(Probe { kind, name, symbol, returns, arguments })
    }

    /// The function at whose entry the arguments are what they are called.
    fn function(&self, symbol: &str) -> String {
        if self.kind == 't' { format!("__traceiter_{symbol}") } else { symbol.into() }
    }

    /// The tracepoint or function, the first that this kernel has.
    fn symbol(&self, btf: &Btf<'_>) -> &'a str {
        let mut all = self.symbol.split('|');
        let first = all.clone().next().unwrap_or_default();
        all.find(|symbol| btf.has_function(&self.function(symbol))).unwrap_or(first)
    }

    /// The line for a kernel that takes such a one.
    ///
    /// Errors: what it does not have.
    pub fn line(&self, btf: &Btf<'_>) -> Result<String, BtfError> {
        let symbol = self.symbol(btf);
        let end = if self.returns { "%return" } else { "" };
        let mut line = format!("{}:{} {symbol}{end}", self.kind, self.name);
        for (name, value) in &self.arguments {
            if let Some((value, _)) = self.first(btf, symbol, value)? {
                line += &format!(" {name}={value}");
            }
        }
        Ok(line)
    }

    /// Translates the probe into a kprobe.
    ///
    /// Errors: what the kernel does not have.
    pub fn kprobe(&self, btf: &Btf<'_>) -> Result<Kprobe, BtfError> {
        let symbol = self.symbol(btf);
        let function = self.function(symbol);
        let mut arguments = Vec::new();
        for (name, value) in &self.arguments {
            if let Some((_, value)) = self.first(btf, symbol, value)? {
                arguments.push(format!(" {name}={value}"));
            }
        }
        let head = format!("{}:{} {function}", if self.returns { 'r' } else { 'p' }, self.name);
        let mut lines = vec![head.clone() + &arguments.concat()];
        let all = arguments.len();
        arguments.retain(|a| {
            !(a.contains('@') && !a.contains(":b") || self.returns && a.contains("$arg"))
        });
        if arguments.len() < all {
            lines.push(head + &arguments.concat());
        }
        let tracepoint = (self.kind == 't').then(|| symbol.to_string());
        Ok(Kprobe { tracepoint, lines })
    }

    /// The first of a value's forms that this kernel has: as a tracepoint or a function takes it, and as
    /// a kprobe does. `None`: it may be left out.
    fn first(
        &self,
        btf: &Btf<'_>,
        symbol: &str,
        value: &str,
    ) -> Result<Option<(String, String)>, BtfError> {
        let mut fault = None;
        for form in value.split('|') {
            if form.is_empty() {
                return Ok(None);
            }
            let done = if form.starts_with(|c: char| c.is_ascii_alphabetic()) {
                self.fetched(btf, symbol, form).map(|fetched| (form.to_string(), fetched))
            } else {
                let counted = |e: &str| if self.kind == 't' { shifted(e) } else { e.into() };
                btf.expand(form).map(|expanded| (expanded.clone(), counted(&expanded)))
            };
            match done {
                Ok(done) => return Ok(Some(done)),
                Err(e) => fault = fault.or(Some(e)),
            }
        }
        // A form there is: `split` gives one at least.
        fault.map_or(Ok(None), Err)
    }

    /// `se->avg.util_avg`, perhaps with a type of its own.
    fn fetched(&self, btf: &Btf<'_>, symbol: &str, form: &str) -> Result<String, BtfError> {
        let (expression, kind) = form.split_once(':').map_or((form, None), |(e, k)| (e, Some(k)));
        let fetched = btf.fetch(&self.function(symbol), expression)?;
        Ok(match (kind, fetched.split_once(':')) {
            (Some(kind), Some((place, _))) => format!("{place}:{kind}"),
            _ => fetched,
        })
    }
}

/// `$arg1` as `$arg2`, and so on: a tracepoint's function has one argument before those it is given.
fn shifted(value: &str) -> String {
    let mut parts = value.split("$arg");
    let mut done = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let number = part[..end].parse().unwrap_or(0u32) + 1;
        done += &format!("$arg{number}{}", &part[end..]);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf::tests::sample_of_functions;

    #[test]
    fn a_probe_is_called_by_its_group_and_name() {
        assert_eq!(name("t:rt/pelt_se pelt_se_tp util=x"), "rt/pelt_se");
        assert_eq!(name("f:rt/eff effective_cpu_util"), "rt/eff");
        assert_eq!(name(""), "");
    }

    fn of(line: &str) -> (Result<String, String>, Result<Kprobe, String>) {
        let bytes = sample_of_functions();
        let btf = Btf::parse(&bytes).unwrap();
        let probe = Probe::parse(line).unwrap();
        let text = |e: BtfError| e.to_string();
        (probe.line(&btf).map_err(text), probe.kprobe(&btf).map_err(text))
    }

    #[test]
    fn the_first_form_that_the_kernel_has_is_taken() {
        let line = "f:rt/k punch|kick cpu=rq->none|rq->cpu v=rq->curr->se.old| w=why:x32 \
                    x=+{rq.none}($arg1):u8|+{rq.cpu}($arg1):u8 j=@jiffies:u64";
        let (native, kprobe) = of(line);
        let raw = "x=+0($arg1):u8 j=@jiffies:u64";
        assert_eq!(native, Ok(format!("f:rt/k kick cpu=rq->cpu w=why:x32 {raw}")));
        let kprobe = kprobe.unwrap();
        assert_eq!(kprobe.tracepoint, None);
        assert_eq!(kprobe.lines[0], format!("p:rt/k kick cpu=+0($arg1):s32 w=$arg2:x32 {raw}"));
        let (native, kprobe) = of("f:rt/k kick cpu=rq->none|rq->no");
        assert_eq!(native, Err("kernel types: rq->none: there is no none".into()));
        assert!(kprobe.is_err());
        assert!(of("f:rt/k punch cpu=rq->cpu").0.is_err());
    }

    #[test]
    fn a_return_gives_up_what_an_old_kernel_cannot_read_there() {
        let (native, kprobe) = of("f:rt/k kick%return ret=$retval:s32 stop=+0($arg3):u8");
        let native_line = "f:rt/k kick%return ret=$retval:s32 stop=+0($arg3):u8";
        assert_eq!(native, Ok(native_line.into()));
        let lines =
            ["r:rt/k kick ret=$retval:s32 stop=+0($arg3):u8", "r:rt/k kick ret=$retval:s32"];
        assert_eq!(kprobe.unwrap().lines, lines);
    }

    #[test]
    fn a_variable_that_has_no_address_is_given_up() {
        let kprobe = of("f:rt/k kick j=@jiffies:u64 on=+8($arg1):b1@1/32").1.unwrap();
        let on = "on=+8($arg1):b1@1/32";
        let lines = [format!("p:rt/k kick j=@jiffies:u64 {on}"), format!("p:rt/k kick {on}")];
        assert_eq!(kprobe.lines, lines);
    }

    #[test]
    fn a_tracepoint_s_function_has_an_argument_of_its_own() {
        assert_eq!(shifted("+8(+16($arg1)):s32 $arg12"), "+8(+16($arg2)):s32 $arg13");
        assert!(Probe::parse("p:rt/x y").is_none() && Probe::parse("").is_none());
        assert!(Probe::parse("t:rt/x y z").is_none());
    }
}
