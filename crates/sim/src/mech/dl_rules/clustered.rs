//! Clustered EDF: an island for good, global EDF among its CPUs.
//!
//! ```text
//! asks ─> the islands with a CPU it may run on that is big enough, the smallest CPUs first:
//!         Σ u of the island and its own ≤ Σ over its CPUs of max_bw · capacity / 1024     none: refused
//! ```
//!
//! An island is a frequency domain. Its sum is what the kernel asks of the whole machine: tasks may be late, by a bounded time.
//! On a platform of one island it is global EDF. Described by J. Calandrino, J. Anderson, D. Baumberger, "A hybrid real-time scheduling
//! approach for large-scale multicore platforms" (ECRTS 2007), for CPUs that share a cache.

use crate::kernel::class::dl_push::select_task_rq_dl;
use crate::state::class::DlPlacement;
use crate::state::effects::Effects;
use crate::state::hooks::Placed;
use crate::state::machine::Machine;
use risetime_kernel::deadline::{BW_SHIFT, DlEntity};
use risetime_kernel::units::{CpuId, TaskId};
use risetime_trace::Why;

pub(crate) struct Clustered;

impl DlPlacement for Clustered {
    fn about(&self) -> (&'static str, &'static str) {
        ("clustered", "clustered EDF: an island for good, global EDF among its CPUs")
    }
    fn enter(&self, m: &Machine, task: TaskId, asked: &DlEntity) -> Option<CpuId> {
        let bw = asked.bw;
        let all = m.dl_smallest_first(task);
        let fits = |domain: usize| {
            let cpus = m.domains[domain].related.iter().copied();
            let own = cpus.filter(|cpu| m.root.online.contains(*cpu));
            let room = own.clone().map(|cpu| m.dl_room(cpu, 0)).sum::<u64>();
            let sum = own.map(|cpu| m.dl_homed(cpu, task)).sum::<u64>();
            sum + bw <= room
        };
        let enough = |cpu: &CpuId| m.cpu(*cpu).capacity.0 >= bw >> (BW_SHIFT - 10);
        let first = all.iter().find(|cpu| enough(cpu) && fits(m.cpu(**cpu).domain))?;
        let (own, domain) = (m.task(task).cpu, m.cpu(*first).domain);
        let stays = m.cpu(own).domain == domain && all.contains(&own);
        Some(if stays { own } else { *first })
    }
    fn wake(&self, m: &Machine, task: TaskId, this_cpu: CpuId, effects: &mut Effects) -> Placed {
        let prev = m.task(task).cpu;
        match m.task(task).slots.dl_rules.home {
            Some(home) if !self.moves(m, task, prev) && m.is_cpu_allowed(task, home) => {
                Placed { cpu: home, why: Why::DlFits }
            }
            _ => select_task_rq_dl(m, task, this_cpu, effects),
        }
    }
    fn moves(&self, m: &Machine, task: TaskId, to: CpuId) -> bool {
        let island = |cpu| m.cpu(cpu).domain;
        m.task(task).slots.dl_rules.home.is_none_or(|home| {
            let own = &m.domains[island(home)].related;
            // The task's affinity may have left it none of its island's CPUs.
            island(home) == island(to) || !own.iter().any(|cpu| m.is_cpu_allowed(task, *cpu))
        })
    }
}
