//! Field numbers of the Perfetto messages that are written.
//!
//! Source: Perfetto, protos/perfetto/trace/: trace.proto, trace_packet.proto,
//! ftrace/{ftrace_event_bundle,ftrace_event,sched,power}.proto, ps/process_tree.proto,
//! system_info.proto, track_event/{track_descriptor,counter_descriptor,thread_descriptor,
//! track_event,debug_annotation}.proto.

pub(super) mod trace {
    pub(in super::super) const PACKET: u32 = 1;
}
pub(super) mod packet {
    pub(in super::super) const FTRACE_EVENTS: u32 = 1;
    pub(in super::super) const PROCESS_TREE: u32 = 2;
    pub(in super::super) const TIMESTAMP: u32 = 8;
    pub(in super::super) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(in super::super) const TRACK_EVENT: u32 = 11;
    pub(in super::super) const SEQUENCE_FLAGS: u32 = 13;
    pub(in super::super) const SYSTEM_INFO: u32 = 45;
    pub(in super::super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(in super::super) const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
    /// Value of `SEQUENCE_FLAGS`.
    pub(in super::super) const SEQ_INCREMENTAL_STATE_CLEARED: u64 = 1;
}
pub(super) mod system_info {
    pub(in super::super) const UTSNAME: u32 = 1;
    pub(in super::super) const HZ: u32 = 3;
    pub(in super::super) const UTSNAME_SYSNAME: u32 = 1;
    pub(in super::super) const UTSNAME_RELEASE: u32 = 3;
}
pub(super) mod bundle {
    pub(in super::super) const CPU: u32 = 1;
    pub(in super::super) const EVENT: u32 = 2;
}
pub(super) mod ftrace {
    pub(in super::super) const TIMESTAMP: u32 = 1;
    pub(in super::super) const PID: u32 = 2;
    pub(in super::super) const PRINT: u32 = 3;
    pub(in super::super) const SCHED_SWITCH: u32 = 4;
    pub(in super::super) const CPU_FREQUENCY: u32 = 11;
    pub(in super::super) const CPU_IDLE: u32 = 13;
    pub(in super::super) const SCHED_WAKEUP: u32 = 17;
    pub(in super::super) const SCHED_WAKING: u32 = 20;
    pub(in super::super) const SCHED_WAKEUP_NEW: u32 = 114;
    pub(in super::super) const SCHED_PROCESS_EXIT: u32 = 238;
    pub(in super::super) const SCHED_MIGRATE_TASK: u32 = 491;
}
pub(super) mod print {
    pub(in super::super) const BUF: u32 = 2;
}
pub(super) mod sched_switch {
    pub(in super::super) const PREV_COMM: u32 = 1;
    pub(in super::super) const PREV_PID: u32 = 2;
    pub(in super::super) const PREV_PRIO: u32 = 3;
    pub(in super::super) const PREV_STATE: u32 = 4;
    pub(in super::super) const NEXT_COMM: u32 = 5;
    pub(in super::super) const NEXT_PID: u32 = 6;
    pub(in super::super) const NEXT_PRIO: u32 = 7;
}
/// Fields of `sched_waking`, `sched_wakeup` and `sched_wakeup_new`; the first three are those of
/// `sched_migrate_task`, too.
pub(super) mod sched_wakeup {
    pub(in super::super) const COMM: u32 = 1;
    pub(in super::super) const PID: u32 = 2;
    pub(in super::super) const PRIO: u32 = 3;
    pub(in super::super) const SUCCESS: u32 = 4;
    pub(in super::super) const TARGET_CPU: u32 = 5;
}
pub(super) mod sched_migrate_task {
    pub(in super::super) const ORIG_CPU: u32 = 4;
    pub(in super::super) const DEST_CPU: u32 = 5;
}
pub(super) mod sched_process_exit {
    pub(in super::super) const COMM: u32 = 1;
    pub(in super::super) const PID: u32 = 2;
    pub(in super::super) const TGID: u32 = 3;
    pub(in super::super) const PRIO: u32 = 4;
}
/// Fields of `cpu_frequency` and `cpu_idle`.
pub(super) mod cpu_power {
    pub(in super::super) const STATE: u32 = 1;
    pub(in super::super) const CPU_ID: u32 = 2;
    /// `state` of `cpu_idle` when the CPU leaves idle: −1 as an unsigned number.
    pub(in super::super) const NOT_IDLE: u64 = 0xffff_ffff;
}
pub(super) mod process_tree {
    pub(in super::super) const PROCESSES: u32 = 1;
    pub(in super::super) const THREADS: u32 = 2;
    pub(in super::super) const PROCESS_PID: u32 = 1;
    pub(in super::super) const PROCESS_PPID: u32 = 2;
    pub(in super::super) const PROCESS_CMDLINE: u32 = 3;
    pub(in super::super) const PROCESS_IS_KTHREAD: u32 = 8;
    pub(in super::super) const THREAD_TID: u32 = 1;
    pub(in super::super) const THREAD_NAME: u32 = 2;
    pub(in super::super) const THREAD_TGID: u32 = 3;
}
pub(super) mod descriptor {
    pub(in super::super) const UUID: u32 = 1;
    pub(in super::super) const NAME: u32 = 2;
    pub(in super::super) const THREAD: u32 = 4;
    pub(in super::super) const PARENT_UUID: u32 = 5;
    pub(in super::super) const COUNTER: u32 = 8;
    pub(in super::super) const COUNTER_UNIT_NAME: u32 = 6;
    pub(in super::super) const THREAD_PID: u32 = 1;
    pub(in super::super) const THREAD_TID: u32 = 2;
    pub(in super::super) const THREAD_NAME: u32 = 5;
}
pub(super) mod track_event {
    pub(in super::super) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(in super::super) const TYPE: u32 = 9;
    pub(in super::super) const TRACK_UUID: u32 = 11;
    pub(in super::super) const CATEGORIES: u32 = 22;
    pub(in super::super) const NAME: u32 = 23;
    pub(in super::super) const COUNTER_VALUE: u32 = 30;
    pub(in super::super) const DOUBLE_COUNTER_VALUE: u32 = 44;
    /// Values of `TYPE`.
    pub(in super::super) const SLICE_BEGIN: u64 = 1;
    pub(in super::super) const SLICE_END: u64 = 2;
    pub(in super::super) const INSTANT: u64 = 3;
    pub(in super::super) const COUNTER: u64 = 4;
}
pub(super) mod annotation {
    pub(in super::super) const UINT_VALUE: u32 = 3;
    pub(in super::super) const DOUBLE_VALUE: u32 = 5;
    pub(in super::super) const STRING_VALUE: u32 = 6;
    pub(in super::super) const NAME: u32 = 10;
}
