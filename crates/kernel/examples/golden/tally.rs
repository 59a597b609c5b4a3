//! Counting rows that agree and rows that do not.

use serde_json::Value;

/// How many mismatches are described in full.
const DESCRIBED: usize = 5;

/// The outcome of checking one file.
#[derive(Debug, Default)]
pub struct Tally {
    /// Rows compared.
    pub rows: u64,
    /// Rows that differ, or that could not be read.
    pub mismatches: u64,
    /// The first mismatches, described.
    pub first: Vec<String>,
}

impl Tally {
    /// Counts one row; `describe` is asked for the first mismatches.
    pub fn row(&mut self, ok: bool, describe: impl FnOnce() -> String) {
        self.rows += 1;
        if !ok {
            self.mismatches += 1;
            if self.first.len() < DESCRIBED {
                self.first.push(describe());
            }
        }
    }

    /// Compares the numbers computed from a row with those in it, from column `from` on.
    pub fn compare(&mut self, place: &str, row: &[i128], from: usize, got: &[i128]) {
        let want = row.get(from..).unwrap_or(&[]);
        self.row(want == got, || format!("{place}: {row:?}: got {got:?}, wanted {want:?}"));
    }

    /// The rows of the array `table[key]`, each of `width` whole numbers. What is not such a row
    /// counts as a mismatch, and so does a table that is missing.
    pub fn rows_of(&mut self, table: &Value, key: &str, width: usize) -> Vec<Vec<i128>> {
        let Some(rows) = table[key].as_array() else {
            self.row(false, || format!("no array `{key}`"));
            return Vec::new();
        };
        let mut good = Vec::with_capacity(rows.len());
        for (i, row) in rows.iter().enumerate() {
            match numbers(row, width) {
                Some(row) => good.push(row),
                None => self.row(false, || format!("{key}[{i}]: not {width} whole numbers: {row}")),
            }
        }
        good
    }

    /// The objects of the array `table[key]`, with their place for messages.
    pub fn groups<'a>(&mut self, table: &'a Value, key: &str) -> Vec<(String, &'a Value)> {
        let Some(groups) = table[key].as_array() else {
            self.row(false, || format!("no array `{key}`"));
            return Vec::new();
        };
        groups.iter().enumerate().map(|(i, v)| (format!("{key}[{i}]"), v)).collect()
    }

    /// The whole number `object[key]`; missing counts as a mismatch.
    pub fn number(&mut self, place: &str, object: &Value, key: &str) -> Option<i128> {
        let number = whole(&object[key]);
        if number.is_none() {
            self.row(false, || format!("{place}: no whole number `{key}`"));
        }
        number
    }
}

/// `row` as exactly `width` whole numbers.
pub fn numbers(row: &Value, width: usize) -> Option<Vec<i128>> {
    let row: Vec<i128> = row.as_array()?.iter().map(whole).collect::<Option<_>>()?;
    (row.len() == width).then_some(row)
}

fn whole(v: &Value) -> Option<i128> {
    v.as_i64().map(i128::from).or_else(|| v.as_u64().map(i128::from))
}

/// Renders to the kernel's 64-bit pattern: negative numbers wrap.
pub fn u(v: i128) -> u64 {
    v as u64
}
