//! New tasks: what they have before anybody has run them.

use crate::mech::slots::TaskSlots;
use crate::state::class::Sched;
use crate::state::costs::Drawn;
use crate::state::cpuset::CpuSet;
use crate::state::machine::State;
use crate::state::machine::Todo;
use crate::state::machine::{Machine, Role, Task};
use crate::state::timers::Wakees;
use risetime_kernel::eevdf::Entity;
use risetime_kernel::eevdf::LoadWeight;
use risetime_kernel::muqss;
use risetime_kernel::pelt_cfs::init_entity_runnable_average;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::uclamp::UclampLimits;
use risetime_kernel::uclamp::UclampTask;
use risetime_kernel::units::Capacity;
use risetime_kernel::units::CpuId;
use risetime_kernel::units::GroupId;
use risetime_kernel::units::Instant;
use risetime_kernel::units::Span;
use risetime_kernel::units::TaskId;
use risetime_kernel::units::Util;
use risetime_kernel::util_est::UtilEst;
use risetime_trace::Name;

/// The `nth` task of its name, which is not created yet, with the number that it will have, as `copy_process` leaves it: fair, of nice 0, allowed everywhere.
pub(crate) fn new_task(m: &Machine, comm: Name, nth: u64, role: Role) -> (TaskId, Task) {
    let load = LoadWeight::of_nice(0);
    let weight = load.weight();
    let id = TaskId(m.tasks.len() as u32);
    let drawn = Drawn::of_task(m.costs.seed, &comm, nth);
    let mut t = Task {
        comm,
        role,
        state: State::New,
        sched: Sched {
            rr_left: m.slots.sysctls.rr_timeslice,
            muqss: m.slots.muqss.map(|_| muqss::Entity::default()),
            ..Sched::new()
        },
        todo: Todo::Nothing,
        kind: 0,
        cpu: CpuId(0),
        allowed: CpuSet::EMPTY,
        nr_cpus_allowed: 0,
        max_allowed_capacity: Capacity(0),
        nice: 0,
        weight,
        avg: init_entity_runnable_average(Some(weight)),
        util_est: UtilEst::default(),
        slept_at: 0,
        group: GroupId::ROOT,
        limits: UclampLimits::default(),
        moves_to: None,
        throttled: false,
        slots: TaskSlots::of(&m.slots),
        uclamp: UclampTask::default(),
        asked: Uclamp::default(),
        entity: Some(Entity::new(id, load)),
        timer_gen: 0,
        soft_expiry: Instant(0),
        due: None,
        ran_under: None,
        cold: Span(0),
        timer_cpu: None,
        listed: 0,
        recent_used_cpu: CpuId(0),
        wakees: Wakees::default(),
        max_speed: Util(0),
        speed_limits: None,
        timers_from: None,
        begins_in: Span(0),
        binds_itself: None,
        drawn,
    };
    t.set_allowed(&m.cpus, CpuSet::first(m.cpus.len()));
    (id, t)
}
