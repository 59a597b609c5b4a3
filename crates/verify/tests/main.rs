//! The simulator and wrong ones, held to what real kernels did: one module a subject.

mod drawn;
mod idle_times;
mod recorded;
mod spread;
mod step;
mod verify;
mod wide;

#[path = "../../../tests/page.rs"]
mod page;
