//! Lines of the record of scores: a figure under its own policies, and under each wrong one.

use risetime_model::{Study, sha256};
use risetime_study::{ToldApart, told_apart};

/// First line of the record.
pub(crate) const HEAD: &str = "study,figure,sha256,phases,document_counted,document_held,ours_counted,ours_held,cannot_fail,rows,wrong";

/// Start phases of the recorded runs.
pub(crate) const PHASES: u32 = 8;

/// A recorded figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) study: String,
    pub(crate) figure: String,
    /// Hash of the study's file, first eight digits: what it was recorded of.
    pub(crate) hash: String,
    pub(crate) phases: u32,
    /// Counted and held of the document's numbers, of ours; rows that cannot fail; all rows.
    pub(crate) counts: [usize; 6],
    /// Each wrong policy with the counted rows that hold under it.
    pub(crate) wrong: Vec<(String, usize)>,
}

impl Line {
    /// Reads a line of the record.
    pub(crate) fn parse(line: &str) -> Line {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |i: usize| fields[i].parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let wrong = fields[10].split_whitespace().map(|pair| {
            let (policy, holds) = pair.rsplit_once(':').expect("POLICY:ROWS");
            (policy.to_string(), holds.parse().expect("a number"))
        });
        Line {
            study: fields[0].into(),
            figure: fields[1].into(),
            hash: fields[2].into(),
            phases: number(3) as u32,
            counts: [4, 5, 6, 7, 8, 9].map(number),
            wrong: wrong.collect(),
        }
    }

    /// Runs the figure.
    pub(crate) fn run(study: &Study, text: &str, figure: &str) -> Line {
        let found = told_apart(study, figure, PHASES).unwrap_or_else(|e| panic!("{figure}: {e}"));
        let ToldApart { score, wrong, figure } = found;
        let (document, ours) = (score.document, score.ours);
        Line {
            study: study.name.clone(),
            figure,
            hash: hash(text),
            phases: PHASES,
            counts: [
                document.counted,
                document.held,
                ours.counted,
                ours.held,
                score.blunt,
                score.all,
            ],
            wrong,
        }
    }

    /// The line, as the record has it.
    pub(crate) fn text(&self) -> String {
        let wrong: Vec<String> = self.wrong.iter().map(|(p, n)| format!("{p}:{n}")).collect();
        let counts = self.counts.map(|n| n.to_string()).join(",");
        let Line { study, figure, hash, phases, .. } = self;
        format!("{study},{figure},{hash},{phases},{counts},{}", wrong.join(" "))
    }

    /// Rows that are counted, and those that hold.
    pub(crate) fn total(&self) -> (usize, usize) {
        let [document, held, ours, ours_held, ..] = self.counts;
        (document + ours, held + ours_held)
    }

    /// Whether a wrong policy loses at least half of the rows that hold.
    pub(crate) fn told_apart(&self) -> bool {
        self.wrong.iter().any(|(_, holds)| 2 * holds <= self.total().1)
    }
}

/// First eight digits of the hash of a study's file.
pub(crate) fn hash(text: &str) -> String {
    sha256(text)[..8].to_string()
}
