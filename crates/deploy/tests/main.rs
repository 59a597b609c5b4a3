//! Admission, and what other solvers found.

mod admission;
mod highs;
mod scip;

#[path = "scip/cases.rs"]
mod cases;
