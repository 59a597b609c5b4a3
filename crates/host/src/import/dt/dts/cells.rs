//! Values of properties: cells with their arithmetic, texts, bytes.

use super::super::Datum;
use super::Reader;
use risetime_model::InputError;
use std::collections::BTreeMap;

/// Words within words that stand for them, and brackets in brackets.
const MAX_NESTED: usize = 32;
/// Words that one expression may look up.
const MAX_STEPS: usize = 10_000;
/// Parts of one value.
const MAX_PARTS: usize = 1 << 20;

impl Reader<'_> {
    /// The parts of a value up to its `;`, which is left.
    pub(super) fn value(&mut self) -> Result<Vec<Datum>, InputError> {
        let mut data = Vec::new();
        let mut bits = 32;
        loop {
            self.blanks();
            let rest = self.rest();
            match rest.chars().next() {
                Some('<') => {
                    self.at += 1;
                    self.cells(bits, &mut data)?;
                    bits = 32;
                }
                Some('"') => data.push(self.text()?),
                Some('[') => data.push(self.bytes()?),
                Some('&') => {
                    self.at += 1;
                    data.push(Datum::Text(self.reference()?));
                }
                Some('/') if rest.starts_with("/bits/") => {
                    self.at += 6;
                    let wanted = self.name();
                    bits = match wanted.as_str() {
                        "8" => 8,
                        "16" => 16,
                        "32" => 32,
                        "64" => 64,
                        _ => return self.unexpected("`/bits/ 8`, `16`, `32` or `64`"),
                    };
                    continue;
                }
                Some('/') if rest.starts_with("/incbin/") => {
                    let Some(end) = rest.find(')') else { return self.unexpected("`)`") };
                    self.at += end + 1;
                    data.push(Datum::Word("/incbin/".into()));
                }
                Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                    let word = self.word();
                    // A label within a value.
                    if self.take(":") {
                        continue;
                    }
                    self.arguments()?;
                    data.push(Datum::Word(word));
                }
                _ => return self.unexpected("a value: `<…>`, `\"…\"`, `[…]`, `&label`"),
            }
            if data.len() > MAX_PARTS {
                return self.error("a value of more than a million parts");
            }
            if !self.take(",") {
                return Ok(data);
            }
        }
    }

    fn text(&mut self) -> Result<Datum, InputError> {
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.text[start + 1..].char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + 1 + i + 1;
                    return Ok(Datum::Text(text));
                }
                '\n' => break,
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                c => text.push(c),
            }
        }
        self.error("a text has no end")
    }

    fn bytes(&mut self) -> Result<Datum, InputError> {
        let Some(end) = self.rest().find(']') else { return self.unexpected("`]`") };
        let digits: Vec<u8> =
            self.rest()[1..end].bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        let digit = |b: &u8| (*b as char).to_digit(16).map(|d| d as u8);
        let Some(digits) = digits.iter().map(digit).collect::<Option<Vec<u8>>>() else {
            return self.unexpected("bytes in hexadecimal");
        };
        self.at += end + 1;
        Ok(Datum::Bytes(digits.chunks(2).map(|d| d.iter().fold(0, |b, d| b << 4 | d)).collect()))
    }

    /// Passes over `(…)`, the arguments of a macro.
    fn arguments(&mut self) -> Result<(), InputError> {
        self.blanks();
        if !self.rest().starts_with('(') {
            return Ok(());
        }
        let mut depth = 0usize;
        for (i, c) in self.rest().char_indices() {
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => {
                    self.at += i + 1;
                    return Ok(());
                }
                ')' => depth -= 1,
                ';' => break,
                _ => {}
            }
        }
        self.unexpected("`)`")
    }

    /// The cells up to `>`.
    fn cells(&mut self, bits: u32, data: &mut Vec<Datum>) -> Result<(), InputError> {
        while !self.take(">") {
            if self.take("&") {
                data.push(Datum::Ref(self.reference()?));
                continue;
            }
            match self.cell()? {
                Ok(n) => number(n, bits, data),
                // What a word of the file itself stands for may be several cells.
                Err(word) => match self.expanded(&word) {
                    Some(numbers) => numbers.into_iter().for_each(|n| number(n, bits, data)),
                    None => data.push(Datum::Word(word)),
                },
            }
            if data.len() > MAX_PARTS {
                return self.error("a value of more than a million parts");
            }
        }
        Ok(())
    }

    /// Passes over labels among cells.
    fn labels(&mut self) {
        loop {
            self.blanks();
            let start = self.at;
            if self.word().is_empty() || !self.take(":") {
                self.at = start;
                return;
            }
        }
    }

    /// A number, an expression in brackets, or a word.
    fn cell(&mut self) -> Result<Result<u64, String>, InputError> {
        self.labels();
        let rest = self.rest();
        let start = self.at;
        match rest.chars().next() {
            Some('(') => {
                self.arguments()?;
                let text = self.text[start..self.at].to_owned();
                Ok(self.evaluate(&text).ok_or(text))
            }
            Some('\'') => {
                let mut chars = rest[1..].chars();
                match (chars.next(), chars.next()) {
                    (Some(c), Some('\'')) => {
                        self.at += 2 + c.len_utf8();
                        Ok(Ok(u64::from(u32::from(c))))
                    }
                    _ => self.unexpected("a character"),
                }
            }
            Some(c) if c.is_ascii_digit() => {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let Some(n) = integer(&rest[..end]) else { return self.unexpected("a number") };
                self.at += end;
                Ok(Ok(n))
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let word = self.word();
                self.arguments()?;
                Ok(Err(word))
            }
            _ => self.unexpected("a cell or `>`"),
        }
    }

    /// The numbers that `word` stands for by the file's own `#define`; `None`: not known.
    fn expanded(&self, word: &str) -> Option<Vec<u64>> {
        let text = self.lines.defines.get(word)?;
        if let Some(n) = self.evaluate(text) {
            return Some(vec![n]);
        }
        let parts: Vec<&str> = text.split_whitespace().collect();
        // One level: a list of numbers or of words that are one number each.
        (parts.len() < 64)
            .then(|| parts.into_iter().map(|p| self.evaluate(p)).collect::<Option<Vec<u64>>>())
            .flatten()
    }

    fn evaluate(&self, text: &str) -> Option<u64> {
        evaluate(text, &self.lines.defines)
    }
}

/// The value of an expression in C; `None`: it is none, or holds a word that nothing explains.
pub(super) fn evaluate(text: &str, defines: &BTreeMap<String, String>) -> Option<u64> {
    let steps = std::cell::Cell::new(MAX_STEPS);
    let mut expression = Expression { text: text.as_bytes(), at: 0, nested: 0, left: &steps };
    let defined = |word: &str| defines.get(word).map(String::as_str);
    let n = expression.ternary(&defined)?;
    expression.blanks();
    (expression.at == expression.text.len()).then_some(n)
}

/// Puts `n` in as so many bits.
fn number(n: u64, bits: u32, data: &mut Vec<Datum>) {
    match bits {
        64 => data.extend([Datum::Cell((n >> 32) as u32), Datum::Cell(n as u32)]),
        16 => data.push(Datum::Bytes((n as u16).to_be_bytes().to_vec())),
        8 => data.push(Datum::Bytes(vec![n as u8])),
        _ => data.push(Datum::Cell(n as u32)),
    }
}

/// A whole number as C writes it.
fn integer(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(|c: char| "uUlL".contains(c));
    let lower = text.to_ascii_lowercase();
    match lower.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if lower.len() > 1 && lower.starts_with('0') => u64::from_str_radix(&lower, 8).ok(),
        None => lower.parse().ok(),
    }
}

/// An expression that is being read.
struct Expression<'t> {
    text: &'t [u8],
    at: usize,
    nested: usize,
    /// Words that may still be looked up: each may stand for two others.
    left: &'t std::cell::Cell<usize>,
}

/// Lookup of the text that a word stands for.
type Defined<'d> = dyn Fn(&str) -> Option<&'d str> + 'd;

/// Operators of two sides by how they bind, the weakest first; longer ones before those that begin them.
const OPERATORS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Expression<'_> {
    fn blanks(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, word: &str) -> bool {
        self.blanks();
        let found = self.text[self.at..].starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn ternary(&mut self, defined: &Defined<'_>) -> Option<u64> {
        self.nested += 1;
        if self.nested > MAX_NESTED {
            return None;
        }
        let condition = self.binary(0, defined)?;
        let value = match self.take("?") {
            false => condition,
            true => {
                let then = self.ternary(defined)?;
                self.take(":").then_some(())?;
                let otherwise = self.ternary(defined)?;
                if condition != 0 { then } else { otherwise }
            }
        };
        self.nested -= 1;
        Some(value)
    }

    fn binary(&mut self, level: usize, defined: &Defined<'_>) -> Option<u64> {
        let Some(operators) = OPERATORS.get(level) else { return self.unary(defined) };
        let mut left = self.binary(level + 1, defined)?;
        loop {
            self.blanks();
            let rest = &self.text[self.at..];
            // `|` is not the first of `||`, `<` not of `<<`.
            let longer = |op: &str| match op {
                "|" | "&" | "<" | ">" => rest.get(1) == Some(&op.as_bytes()[0]),
                _ => false,
            };
            let found = operators.iter().find(|op| rest.starts_with(op.as_bytes()) && !longer(op));
            let Some(operator) = found else { return Some(left) };
            self.at += operator.len();
            let right = self.binary(level + 1, defined)?;
            left = apply(operator, left, right)?;
        }
    }

    fn unary(&mut self, defined: &Defined<'_>) -> Option<u64> {
        self.nested += 1;
        if self.nested > MAX_NESTED {
            return None;
        }
        let value = if self.take("-") {
            self.unary(defined)?.wrapping_neg()
        } else if self.take("~") {
            !self.unary(defined)?
        } else if self.take("!") {
            u64::from(self.unary(defined)? == 0)
        } else if self.take("(") {
            let inner = self.ternary(defined)?;
            self.take(")").then_some(inner)?
        } else {
            self.word(defined)?
        };
        self.nested -= 1;
        Some(value)
    }

    fn word(&mut self, defined: &Defined<'_>) -> Option<u64> {
        self.blanks();
        let rest = &self.text[self.at..];
        let good = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
        let length = rest.iter().take_while(good).count();
        let word = std::str::from_utf8(&rest[..length]).ok()?;
        self.at += length;
        match word.bytes().next()? {
            b'0'..=b'9' => integer(word),
            _ => {
                let text = defined(word)?;
                self.left.set(self.left.get().checked_sub(1)?);
                let (nested, left) = (self.nested + 1, self.left);
                let mut inner = Expression { text: text.as_bytes(), at: 0, nested, left };
                let n = inner.ternary(defined)?;
                inner.blanks();
                (inner.at == inner.text.len()).then_some(n)
            }
        }
    }
}

fn apply(operator: &str, a: u64, b: u64) -> Option<u64> {
    Some(match operator {
        "||" => u64::from(a != 0 || b != 0),
        "&&" => u64::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => u64::from(a == b),
        "!=" => u64::from(a != b),
        "<=" => u64::from(a <= b),
        ">=" => u64::from(a >= b),
        "<" => u64::from(a < b),
        ">" => u64::from(a > b),
        "<<" => a.checked_shl(u32::try_from(b).ok()?).unwrap_or(0),
        ">>" => a.checked_shr(u32::try_from(b).ok()?).unwrap_or(0),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" => a.checked_div(b)?,
        _ => a.checked_rem(b)?,
    })
}
