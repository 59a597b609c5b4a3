//! Figures from traces.

mod common;
mod definitions;
mod figures;
mod properties;
mod readings;
mod unseen;
