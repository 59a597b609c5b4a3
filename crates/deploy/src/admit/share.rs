//! Utilisation under EDF: C. L. Liu, J. W. Layland, "Scheduling Algorithms for Multiprogramming in a Hard-Real-Time
//! Environment", J. ACM 20(1), 1973, theorem 7.

use super::{Scheduler, Test, Verdict, on_one, percent};
use crate::{Load, Share};
use risetime_kernel::units::Capacity;

pub(super) const EDF_SHARE: Test = Test {
    name: "edf_share",
    doc: "what the tasks take together is no more than the CPU; tells all where no job is due before its period ends",
    source: "Liu and Layland 1973, theorem 7",
    of: &[Scheduler::Edf],
    exact: false,
    ask,
};

fn ask(tasks: &[Load], speeds: &[Capacity], _: Scheduler) -> Verdict {
    let tasks = on_one(tasks, speeds);
    let share = Share::sum(tasks.iter().map(Load::share));
    if share > Share::whole(1) {
        return Verdict::refused(None, format!("they take {} of the CPU", percent(share)));
    }
    if tasks.iter().all(|t| t.deadline >= t.period) {
        return Verdict::admitted(format!("they take {} of the CPU", percent(share)));
    }
    let dense = Share::sum(tasks.iter().map(Load::density));
    if dense <= Share::whole(1) {
        return Verdict::admitted(format!("up to their deadlines they take {}", percent(dense)));
    }
    let task = tasks.iter().position(|t| t.deadline < t.period);
    Verdict::unknown(task, "jobs are due before their periods end")
}
