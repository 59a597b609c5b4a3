//! HiGHS as the optimiser's solver (Huangfu and Hall 2018; MIT licence). In the binary with the feature `highs` alone.
//!
//! One thread and a limit in nodes, not in seconds: the same program has the same answer. Its tolerances: 10⁻⁹ where rows and whole
//! numbers are asked for, and a gap of 10⁻⁴ between answer and bound.

use highs::{HighsModelStatus, HighsSolutionStatus, RowProblem, Sense};
use risetime_deploy::optimise::{Linear, Milp, Solved};
use std::num::NonZeroU32;

/// Branch-and-bound nodes of one program.
const NODES: i32 = 300_000;

pub(crate) struct Highs;

impl Milp for Highs {
    fn solve(&mut self, program: &Linear) -> Result<Option<Solved>, String> {
        let mut rows = RowProblem::default();
        let columns: Vec<_> = program
            .columns
            .iter()
            .map(|c| rows.add_column_with_integrality(c.cost, c.lower..=c.upper, c.integer))
            .collect();
        for row in &program.rows {
            let terms: Vec<_> = row.terms.iter().map(|(i, by)| (columns[*i], *by)).collect();
            rows.add_row(row.lower..=row.upper, terms);
        }
        let said = |what| format!("HiGHS: {what:?}");
        let mut model = rows.try_optimise(Sense::Minimise).map_err(said)?;
        model.make_quiet();
        model.set_threads(NonZeroU32::MIN);
        model.set_option("mip_rel_gap", 1e-4);
        model.set_option("mip_feasibility_tolerance", 1e-9);
        model.set_option("primal_feasibility_tolerance", 1e-9);
        model.set_option("mip_max_nodes", NODES);
        let solved = model.try_solve().map_err(said)?;
        match solved.status() {
            HighsModelStatus::Infeasible | HighsModelStatus::UnboundedOrInfeasible => Ok(None),
            _ if solved.primal_solution_status() == HighsSolutionStatus::Feasible => {
                let bound = solved.double_info_value(c"mip_dual_bound").map_err(said)?;
                Ok(Some(Solved { values: solved.get_solution().columns().to_vec(), bound }))
            }
            other => Err(format!("HiGHS gave up: {other:?}")),
        }
    }
}

#[cfg(test)]
#[path = "../../deploy/tests/scip/cases.rs"]
mod cases;

#[cfg(test)]
#[path = "../../deploy/tests/highs/answers.rs"]
#[allow(dead_code, reason = "what the test without HiGHS reads with")]
mod answers;

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_deploy::optimise::{Column, ENDLESS, Objective, Row, check, exact, outer};
    use std::collections::BTreeMap;

    fn whole(cost: f64) -> Column {
        Column { cost, lower: 0.0, upper: 1.0, integer: true }
    }

    fn at_most(upper: f64, terms: &[(usize, f64)]) -> Row {
        Row { lower: f64::NEG_INFINITY, upper, terms: terms.to_vec() }
    }

    /// By hand: of values 5, 4, 3 with weights 2, 3, 1 and room for 4 the first and the last, 8; by parts of them it is 9.33.
    #[test]
    fn a_knapsack_is_packed() {
        let program = Linear {
            columns: vec![whole(-5.0), whole(-4.0), whole(-3.0)],
            rows: vec![at_most(4.0, &[(0, 2.0), (1, 3.0), (2, 1.0)])],
            constant: 0.0,
        };
        let solved = Highs.solve(&program).expect("solved").expect("there is one");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(solved.values.iter().zip([1.0, 0.0, 1.0]).all(|(a, b)| near(*a, b)), "{solved:?}");
        assert!(near(solved.bound, -8.0), "{solved:?}");
    }

    #[test]
    fn what_nothing_obeys_has_no_answer() {
        let rows = vec![at_most(-1.0, &[(0, 1.0)])];
        let program = Linear { columns: vec![whole(1.0)], rows, constant: 0.0 };
        assert_eq!(Highs.solve(&program), Ok(None));
    }

    /// HiGHS, and what it said.
    #[derive(Default)]
    struct Heard(Vec<answers::Answer>);

    impl Milp for Heard {
        fn solve(&mut self, program: &Linear) -> Result<Option<Solved>, String> {
            let solved = Highs.solve(program)?;
            if let Some(solved) = &solved {
                // It obeys every row, within what it is asked to.
                for (n, row) in program.rows.iter().enumerate() {
                    let sum: f64 = row.terms.iter().map(|(i, by)| by * solved.values[*i]).sum();
                    let scale = 1e-6 * row.terms.iter().map(|t| t.1.abs()).fold(1.0, f64::max);
                    let obeys = row.lower - scale <= sum && sum <= row.upper + scale;
                    assert!(obeys, "row {n}: {sum} of {row:?}");
                }
            }
            self.0.push(answers::Answer::of(program, solved.as_ref()));
            Ok(solved)
        }
    }

    /// The least power of the search, for both objectives; `BLESS=1` records what was said, for tests without HiGHS.
    #[test]
    fn the_least_power_is_found() {
        let mut all = BTreeMap::new();
        for (name, p) in cases::cases() {
            let mut heard = Heard::default();
            let (found, rounds) = outer(&p, Objective::SLACK, &mut heard).expect(&name);
            let (least, _) = exact(&p, Objective::SLACK, ENDLESS);
            let [own, other] =
                [found, least].map(|f| check(&p, &f.expect(&name).deployment).expect("obeys"));
            assert!(rounds.whole, "{name}: {rounds:?}");
            assert!(own.power_nw <= other.power_nw + other.power_nw / 5000, "{name}");
            let slack = own.min_slack_ppm().abs_diff(other.min_slack_ppm());
            assert!(slack < 1000, "{name}: {slack}");
            all.insert(name, heard.0);
        }
        if std::env::var_os("BLESS").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/tests/highs/answers.csv");
            std::fs::write(path, answers::written(&all)).expect("written");
        }
    }
}
