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
