//! Answers of a solver to the programs of a case, one after the other: written where it is asked, read where it is not.

use risetime_deploy::optimise::{Linear, Milp, Solved};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What it said of one program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// Whole columns that are 1.
    pub(crate) ones: Vec<usize>,
    pub(crate) bound: f64,
    /// True if there is an answer.
    pub(crate) found: bool,
}

impl Answer {
    pub(crate) fn of(program: &Linear, solved: Option<&Solved>) -> Answer {
        let one = |(i, column): (usize, &risetime_deploy::optimise::Column)| {
            let value = solved?.values[i];
            (column.integer && value > 0.5).then_some(i)
        };
        Answer {
            columns: program.columns.len(),
            rows: program.rows.len(),
            ones: program.columns.iter().enumerate().filter_map(one).collect(),
            bound: solved.map_or(0.0, |s| s.bound),
            found: solved.is_some(),
        }
    }
}

/// In place of a solver: what one said.
pub(crate) struct Replay {
    answers: std::collections::VecDeque<Answer>,
}

impl Replay {
    pub(crate) fn new(answers: Vec<Answer>) -> Replay {
        Replay { answers: answers.into() }
    }
    pub(crate) fn left(&self) -> &std::collections::VecDeque<Answer> {
        &self.answers
    }
}

impl Milp for Replay {
    fn solve(&mut self, program: &Linear) -> Result<Option<Solved>, String> {
        let fits = |a: &Answer| (a.columns, a.rows) == (program.columns.len(), program.rows.len());
        let Some(answer) = self.answers.pop_front().filter(fits) else {
            return Err("recorded for other programs: `make highs BLESS=1` asks again".into());
        };
        let mut values = vec![0.0; answer.columns];
        answer.ones.iter().for_each(|i| values[*i] = 1.0);
        Ok(answer.found.then_some(Solved { values, bound: answer.bound }))
    }
}

const HEAD: &str = "case,columns,rows,bound,ones";

pub(crate) fn written(all: &BTreeMap<String, Vec<Answer>>) -> String {
    let mut out = format!("{HEAD}\n");
    for (case, answers) in all {
        for a in answers {
            let ones: Vec<String> = a.ones.iter().map(usize::to_string).collect();
            let bound = if a.found { a.bound.to_string() } else { "none".to_string() };
            let _ = writeln!(out, "{case},{},{},{bound},{}", a.columns, a.rows, ones.join(" "));
        }
    }
    out
}

pub(crate) fn read(text: &str) -> BTreeMap<String, Vec<Answer>> {
    let mut all: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |i: usize| cells[i].parse().expect(line);
        let ones = cells[4].split_whitespace().map(|i| i.parse().expect(line)).collect();
        let answer = Answer {
            columns: number(1),
            rows: number(2),
            ones,
            bound: cells[3].parse().unwrap_or(0.0),
            found: cells[3] != "none",
        };
        all.entry(cells[0].to_string()).or_default().push(answer);
    }
    all
}
