//! Values of `--vary NAME=VALUES`.
//!
//! ```text
//! 500..4000:500      from the first to the second, both included where the steps meet it
//! 500..8000*2        each the one before times 2, as many decimals as the ends have
//! 500,1000..3000:500 one after another; a comma within brackets ([0,1]) parts nothing
//! ```
//!
//! Steps are counted in whole numbers of the smallest decimal, so that none drifts.

use risetime_analysis::sweep::Axis;
use risetime_model::{InputError, Subject};

/// Points of a grid, at most.
pub const MAX_POINTS: usize = 10_000;

/// `NAME=VALUES`.
///
/// Errors: no such form, a value twice, more values than a grid may have points.
pub fn axis(text: &str) -> Result<Axis, InputError> {
    let bad = |what: String| argument(text, what);
    let (name, values) = named(text)?;
    let mut all: Vec<String> = Vec::new();
    for part in parts(values) {
        all.extend(part_values(part.trim()).map_err(|what| bad(what).hint(FORMS))?);
        if all.len() > MAX_POINTS {
            return Err(bad(format!("more than {MAX_POINTS} values")));
        }
    }
    if all.iter().any(String::is_empty) {
        return Err(bad("a value is empty".into()).hint(FORMS));
    }
    let mut sorted: Vec<&String> = all.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|w| w[0] == w[1]) {
        Some(twice) => Err(bad(format!("the value {} is there twice", twice[0]))),
        None => Ok(Axis { name: name.into(), unit: unit(name), values: all }),
    }
}

/// The unit of a setting's values, unless its name ends with that.
fn unit(name: &str) -> &'static str {
    const SAID: [&str; 4] = ["_ns", "_us", "_ms", "_khz"];
    let of_all = name.split(".policy").next();
    let all = risetime_sim::catalogue();
    let setting = all.params().map(|(_, p)| p).find(|p| Some(p.name) == of_all);
    setting.filter(|p| !SAID.iter().any(|unit| p.name.ends_with(unit))).map_or("", |p| p.unit)
}

/// `NAME=VALUE` with one value, whatever is in it.
///
/// Errors: no such form.
pub fn named(text: &str) -> Result<(&str, &str), InputError> {
    match text.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => Err(argument(text, "wanted NAME=VALUES").hint(FORMS)),
    }
}

/// An error about `text`, an argument of `--vary`.
pub(super) fn argument(text: &str, what: impl Into<String>) -> InputError {
    InputError::new(place(text), what).about(Subject::Argument)
}

/// The place of an error about `--vary TEXT`.
pub(super) fn place(text: &str) -> String {
    format!("--vary {}", text.chars().filter(|c| !c.is_control()).take(200).collect::<String>())
}

const FORMS: &str =
    "ui.run=1000..6000:500 (steps), rate_limit_us=500..8000*2 (factor), policy=linux-6.8,linux-7.2";

/// Splits values at commas that are in no brackets.
fn parts(values: &str) -> Vec<&str> {
    let (mut depth, mut from, mut all) = (0_i32, 0, Vec::new());
    for (at, c) in values.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth <= 0 => {
                all.push(&values[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(&values[from..]);
    all
}

/// Reads one value, or those of a range: a text that begins with a number and `..`.
fn part_values(part: &str) -> Result<Vec<String>, String> {
    // `0%..50%:10%`: settings in percent take numbers without the sign as well.
    let plain = part.replace('%', "");
    let range = plain.split_once("..").and_then(|(a, rest)| Some((Decimal::parse(a)?, rest)));
    let Some((low, rest)) = range else { return Ok(vec![part.to_string()]) };
    let wanted = || format!("`{part}`: wanted A..B:STEP or A..B*FACTOR, in numbers");
    let numbers = |sign| {
        let (b, by) = rest.split_once(sign)?;
        Some((Decimal::parse(b)?, Decimal::parse(by)?))
    };
    if let Some((high, step)) = numbers(':') {
        return steps(low, high, step).map_err(|what| format!("`{part}`: {what}"));
    }
    let (high, factor) = numbers('*').ok_or_else(wanted)?;
    factors(low, high, factor).map_err(|what| format!("`{part}`: {what}"))
}

/// A number as it is written: `units` · 10^−`digits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    units: i128,
    digits: u32,
}

impl Decimal {
    /// Parses a number of at most 15 digits before the point, and 9 behind it.
    fn parse(text: &str) -> Option<Decimal> {
        let text = text.trim();
        let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
        let (whole, part) = rest.split_once('.').unwrap_or((rest, ""));
        let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        let fine = digits(whole) && digits(part) && !whole.is_empty();
        if !fine || whole.len() > 15 || part.len() > 9 || rest.ends_with('.') {
            return None;
        }
        let units: i128 = format!("{whole}{part}").parse().ok()?;
        Some(Decimal { units: sign * units, digits: part.len() as u32 })
    }

    fn units(self, digits: u32) -> i128 {
        self.units * 10_i128.pow(digits - self.digits)
    }

    fn float(self) -> f64 {
        self.units as f64 / 10_f64.powi(self.digits as i32)
    }
}

/// `units` · 10^−`digits`, without zeros at its end.
fn written(units: i128, digits: u32) -> String {
    let sign = if units < 0 { "-" } else { "" };
    let scale = 10_u128.pow(digits);
    let (whole, part) = (units.unsigned_abs() / scale, units.unsigned_abs() % scale);
    let text = format!("{sign}{whole}.{part:0width$}", width = digits as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn steps(low: Decimal, high: Decimal, step: Decimal) -> Result<Vec<String>, String> {
    let digits = low.digits.max(high.digits).max(step.digits);
    let (a, b, by) = (low.units(digits), high.units(digits), step.units(digits));
    if by <= 0 || a > b {
        return Err("wanted a step above 0, and the smaller number first".into());
    }
    let n = (b - a) / by + 1;
    if n > MAX_POINTS as i128 {
        return Err(format!("{n} values, wanted at most {MAX_POINTS}"));
    }
    Ok((0..n).map(|i| written(a + i * by, digits)).collect())
}

fn factors(low: Decimal, high: Decimal, factor: Decimal) -> Result<Vec<String>, String> {
    let digits = low.digits.max(high.digits);
    let (a, b, by) = (low.units(digits), high.units(digits), factor.float());
    if by <= 1.0 || a <= 0 || a > b {
        return Err("wanted a factor above 1, and numbers above 0, the smaller one first".into());
    }
    let mut all = Vec::new();
    let mut at = a as f64;
    // Values that round to the same one count, too: a factor next to 1 would give no end of them.
    for _ in 0..=MAX_POINTS {
        // What a float loses must not lose the last one.
        if at > b as f64 * (1.0 + 1e-9) {
            return Ok(all);
        }
        let value = written(at.round() as i128, digits);
        if all.last() != Some(&value) {
            all.push(value);
        }
        at *= by;
    }
    Err(format!("more than {MAX_POINTS} values"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    fn values(text: &str) -> Vec<String> {
        axis(&format!("x={text}")).unwrap_or_else(|e| panic!("{e}")).values
    }

    #[test]
    fn values_are_counted_out() {
        assert_eq!(values("500..2000:500"), ["500", "1000", "1500", "2000"]);
        assert_eq!(values("1..2.1:0.5"), ["1", "1.5", "2"]);
        assert_eq!(values("0.1..0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("0%..20%:10%"), ["0", "10", "20"]);
        assert_eq!(values("10%,mainline"), ["10%", "mainline"]);
        assert_eq!(values("-2..2:2"), ["-2", "0", "2"]);
        assert_eq!(values("7..7:1"), ["7"]);
        assert_eq!(values("500..8000*2"), ["500", "1000", "2000", "4000", "8000"]);
        assert_eq!(values("100..400*1.5"), ["100", "150", "225", "338"]);
        assert_eq!(values("0.1..0.8*2"), ["0.1", "0.2", "0.4", "0.8"]);
        assert_eq!(values("1..4*1.1"), ["1", "2", "3", "4"]);
        assert_eq!(
            values("linux-6.8, rfc-v1+rate_limit_us=70"),
            ["linux-6.8", "rfc-v1+rate_limit_us=70"]
        );
        assert_eq!(values("../a.toml,b.toml,6.12"), ["../a.toml", "b.toml", "6.12"]);
        assert_eq!(values("[0,1],[2],{\"a\": [1,2]}"), ["[0,1]", "[2]", "{\"a\": [1,2]}"]);
        assert_eq!(values("-5"), ["-5"]);
    }

    #[test]
    fn what_is_no_list_of_values_is_told() {
        for (text, wanted) in [
            ("x", "--vary x: wanted NAME=VALUES"),
            ("=5", "wanted NAME=VALUES"),
            ("x=", "wanted NAME=VALUES"),
            ("x=1,,2", "a value is empty"),
            ("x=1,2,1", "the value 1 is there twice"),
            ("x=1..5", "`1..5`: wanted A..B:STEP or A..B*FACTOR"),
            ("x=1..a:2", "wanted A..B:STEP"),
            ("x=1..5:0", "a step above 0"),
            ("x=5..1:1", "the smaller number first"),
            ("x=1..5*1", "a factor above 1"),
            ("x=0..5*2", "numbers above 0"),
            ("x=1..20000:1", "20000 values, wanted at most 10000"),
            ("x=1..999999999999999*1.000000001", "more than 10000 values"),
            ("x=0..9000:1,10000..19000:1", "more than 10000 values"),
        ] {
            let e = axis(text).expect_err(text).to_string();
            assert!(e.contains(wanted) && e.starts_with("--vary "), "{text}: {e}");
        }
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        /// From the first on, in steps, as long as there is one: the last is the end where the steps meet it.
        #[test]
        fn steps_are_even_and_reach_the_end(a in -5000_i64..5000, n in 0_i64..40, step in 1_i64..500, over in 0_i64..500, digits in 0_u32..4) {
            let over = over.min(step - 1);
            let text = |units: i64| written(units.into(), digits);
            let (low, high) = (text(a), text(a + n * step + over));
            let found = values(&format!("{low}..{high}:{}", text(step)));
            let wanted: Vec<String> = (0..=n).map(|i| text(a + i * step)).collect();
            prop_assert_eq!(found, wanted);
        }

        /// Ascending, within the ends, each about a factor above the one before, and another would be outside.
        #[test]
        fn factors_reach_the_end(a in 1_i64..1000, times in 1_i64..1000, tenths in 11_i64..50) {
            let (b, by) = (a * times, tenths as f64 / 10.0);
            let found = values(&format!("{a}..{b}*{by}"));
            let found: Vec<f64> = found.iter().map(|v| v.parse().expect("a number")).collect();
            prop_assert_eq!(found[0], a as f64);
            prop_assert!(found.windows(2).all(|w| w[0] < w[1] && w[1] <= w[0] * by + by), "{found:?}");
            let last = found[found.len() - 1];
            prop_assert!(last <= b as f64 + 0.5 && (last + 1.0) * by > b as f64 - 0.5, "{found:?}");
        }
    }
}
