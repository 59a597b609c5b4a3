//! Expectations of a [metric](crate::metric): `frame.response_p99 <= 16.6ms`.

use crate::metric::{Metric, Unit};
use crate::result::RunResult;
use risetime_model::{InputError, Workload};

/// A comparison with a figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// Text of the expectation, as it was written.
    pub text: String,
    /// The figure that it is about.
    pub figure: Metric,
    /// Option that asked for it.
    place: &'static str,
    than: Than,
    value: f64,
    unit: Option<Unit>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Than {
    Less,
    AtMost,
    More,
    AtLeast,
    Same,
}

/// Units as they are written, and how many ms or mJ they are.
const UNITS: [(&str, Unit, f64); 8] = [
    ("us", Unit::Time, 1e-3),
    ("ms", Unit::Time, 1.0),
    ("s", Unit::Time, 1e3),
    ("uJ", Unit::Energy, 1e-3),
    ("mJ", Unit::Energy, 1.0),
    ("J", Unit::Energy, 1e3),
    ("C", Unit::Temperature, 1.0),
    ("/s", Unit::PerSecond, 1.0),
];

/// Longer ones first.
const COMPARISONS: [(&str, Than); 6] = [
    ("<=", Than::AtMost),
    (">=", Than::AtLeast),
    ("==", Than::Same),
    ("<", Than::Less),
    (">", Than::More),
    ("=", Than::Same),
];

/// Outcome of an expectation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Checked {
    /// True if the expectation holds.
    pub holds: bool,
    /// The figure found; `None`: there is no such figure in this run (no job was done), which holds
    /// for nothing.
    pub found: Option<f64>,
    /// Unit of the figure.
    pub unit: Unit,
    /// Reason for which there is none; `None`: there is one, or nothing of the kind happened.
    pub absent: Option<&'static str>,
}

impl Expectation {
    /// Parses an expectation.
    ///
    /// Errors: no comparison, no number, an unknown unit.
    pub fn parse(text: &str) -> Result<Expectation, InputError> {
        Expectation::parse_at(text, "--expect")
    }

    /// The figure of that name, asked for at `place`.
    ///
    /// Errors: as there.
    pub fn parse_at(text: &str, place: &'static str) -> Result<Expectation, InputError> {
        let wrong = |what: String| {
            InputError::new(place, what).hint("for example 'ui.response_p99 <= 16.6ms'")
        };
        let split = COMPARISONS.iter().find_map(|(sign, than)| {
            text.split_once(sign).map(|(figure, value)| (figure, *than, value))
        });
        let Some((figure, than, value)) = split else {
            return Err(wrong(format!(
                "found `{text}`, wanted a figure, one of < <= > >= =, a value"
            )));
        };
        let value = value.trim();
        let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || "µ°/".contains(c));
        let written = value[digits.len()..].replace('µ', "u").replace("°C", "C");
        let number = digits.trim().parse::<f64>().ok().filter(|n| n.is_finite());
        let Some(number) = number else {
            return Err(wrong(format!("`{text}`: `{value}` is no number with a unit")));
        };
        let known = UNITS.iter().find(|(name, ..)| *name == written);
        if known.is_none() && !written.is_empty() {
            let units = UNITS.map(|(name, ..)| name).join(", ");
            return Err(wrong(format!("`{text}`: unknown unit `{written}`; known: {units}")));
        }
        Ok(Expectation {
            text: text.trim().to_string(),
            figure: Metric::new(figure.trim()),
            place,
            than,
            value: number * known.map_or(1.0, |(.., scale)| *scale),
            unit: known.map(|(_, unit, _)| *unit),
        })
    }

    /// Whether some run of `w` may have such a figure.
    ///
    /// Errors: none has.
    pub fn check_name(&self, w: &Workload) -> Result<(), InputError> {
        self.figure.check(w).map_err(|e| self.placed(e))
    }

    fn placed(&self, e: InputError) -> InputError {
        InputError { place: self.place.into(), what: format!("`{}`: {}", self.text, e.what), ..e }
    }

    /// Whether it holds in `run`.
    ///
    /// Errors: a figure that no such run has; a unit that is not the figure's.
    pub fn check(&self, run: &RunResult) -> Result<Checked, InputError> {
        let (found, unit) = self.figure.of(run).map_err(|e| self.placed(e))?;
        self.check_unit(unit)?;
        let absent = self.figure.absent(run);
        Ok(Checked { holds: self.holds(found), found, unit, absent })
    }

    /// Whether its value counts what the figure does, `unit`.
    ///
    /// Errors: it counts something else.
    pub fn check_unit(&self, unit: Unit) -> Result<(), InputError> {
        let wrong = |what: String| InputError::new(self.place, what);
        if let Some(own) = self.unit.filter(|own| *own != unit) {
            let is = match unit {
                Unit::Count => "a number".to_string(),
                unit => format!("in{}", unit.as_str()),
            };
            return Err(wrong(format!(
                "`{}`: the figure is {is}, not in{}",
                self.text,
                own.as_str()
            )));
        }
        Ok(())
    }

    /// Whether it holds of this value; `None`, there is none, holds for nothing.
    pub fn holds(&self, found: Option<f64>) -> bool {
        let value = self.value;
        found.is_some_and(|found| match self.than {
            Than::Less => found < value,
            Than::AtMost => found <= value,
            Than::More => found > value,
            Than::AtLeast => found >= value,
            Than::Same => found == value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_and_units() {
        let parsed =
            |text| Expectation::parse(text).map(|e| (e.figure.name, e.than, e.value, e.unit));
        let frame = |than, value, unit| Ok(("a.b.p99".to_string(), than, value, unit));
        let time = Some(Unit::Time);
        assert_eq!(parsed("a.b.p99<=16.5ms"), frame(Than::AtMost, 16.5, time));
        assert_eq!(parsed(" a.b.p99 >= -2 s "), frame(Than::AtLeast, -2000.0, time));
        assert_eq!(parsed("a.b.p99 < 500µs"), frame(Than::Less, 0.5, time));
        assert_eq!(parsed("a.b.p99 = 3"), frame(Than::Same, 3.0, None));
        assert_eq!(parsed("a.b.p99 > 2J"), frame(Than::More, 2000.0, Some(Unit::Energy)));
        let hot = Some(Unit::Temperature);
        assert_eq!(parsed("a.b.p99 <= 55°C"), frame(Than::AtMost, 55.0, hot));
        assert_eq!(parsed("a.b.p99 <= 55 C"), frame(Than::AtMost, 55.0, hot));
        for wrong in ["", "a", "a <", "a < ms", "a < 3 furlongs", "a < nan", "a < inf", "a < 5°"] {
            assert!(Expectation::parse(wrong).is_err(), "{wrong}");
        }
    }
}
