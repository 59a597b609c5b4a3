//! Numbers of fields, by message.
//!
//! Source: Perfetto, protos/perfetto/trace/: trace_packet.proto, clock_snapshot.proto, trace_packet_defaults.proto,
//! ftrace/{ftrace_event_bundle,ftrace_event,ftrace_stats,generic}.proto, ps/process_tree.proto, power/power_rails.proto,
//! interned_data/interned_data.proto, track_event/*.proto, system_info.proto; frames: frameworks_native_trace_packet.proto.

/// `TracePacket`.
pub(super) mod packet {
    pub(in super::super) const FTRACE: u32 = 1;
    pub(in super::super) const PROCESS_TREE: u32 = 2;
    pub(in super::super) const CLOCKS: u32 = 6;
    pub(in super::super) const AT: u32 = 8;
    pub(in super::super) const SEQUENCE: u32 = 10;
    pub(in super::super) const TRACK_EVENT: u32 = 11;
    pub(in super::super) const INTERNED: u32 = 12;
    pub(in super::super) const FLAGS: u32 = 13;
    pub(in super::super) const FTRACE_STATS: u32 = 34;
    pub(in super::super) const POWER_RAILS: u32 = 40;
    pub(in super::super) const CLEARED: u32 = 41;
    pub(in super::super) const DROPPED: u32 = 42;
    pub(in super::super) const SYSTEM_INFO: u32 = 45;
    pub(in super::super) const DEFLATED: u32 = 50;
    pub(in super::super) const CLOCK: u32 = 58;
    pub(in super::super) const DEFAULTS: u32 = 59;
    pub(in super::super) const TRACK: u32 = 60;
    pub(in super::super) const FRAME: u32 = 76;
    pub(in super::super) const MACHINE: u32 = 98;
    pub(in super::super) const ZSTD: u32 = 133;
}

/// `FtraceEventBundle`.
pub(super) mod bundle {
    pub(in super::super) const CPU: u32 = 1;
    pub(in super::super) const EVENT: u32 = 2;
    pub(in super::super) const LOST: u32 = 3;
    pub(in super::super) const COMPACT: u32 = 4;
    pub(in super::super) const CLOCK: u32 = 5;
    pub(in super::super) const CLOCK_AT: u32 = 6;
    pub(in super::super) const BOOT_AT: u32 = 7;
    pub(in super::super) const ERROR: u32 = 8;
    pub(in super::super) const READ_BEFORE: u32 = 9;
    pub(in super::super) const ENDED_BEFORE: u32 = 10;
    pub(in super::super) const DESCRIPTOR: u32 = 11;
}

/// `FtraceEventBundle.CompactSched`.
pub(super) mod compact {
    pub(in super::super) const SWITCH_AT: u32 = 1;
    pub(in super::super) const SWITCH_STATE: u32 = 2;
    pub(in super::super) const SWITCH_PID: u32 = 3;
    pub(in super::super) const SWITCH_PRIO: u32 = 4;
    pub(in super::super) const COMM: u32 = 5;
    pub(in super::super) const SWITCH_COMM: u32 = 6;
    pub(in super::super) const WAKING_AT: u32 = 7;
    pub(in super::super) const WAKING_PID: u32 = 8;
    pub(in super::super) const WAKING_CPU: u32 = 9;
    pub(in super::super) const WAKING_PRIO: u32 = 10;
    pub(in super::super) const WAKING_COMM: u32 = 11;
}

/// `FtraceEvent`; the numbers of the events themselves are in [`table`](super::super::table).
pub(super) mod event {
    pub(in super::super) const AT: u32 = 1;
    pub(in super::super) const PID: u32 = 2;
    pub(in super::super) const FLAGS: u32 = 5;
    pub(in super::super) const GENERIC: u32 = 327;
}
