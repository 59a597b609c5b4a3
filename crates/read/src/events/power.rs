//! Rows of frequencies, idle states and heat.

use super::{Fields, Row, readable};
use crate::story::Story;
use crate::take::Stamp;
use risetime_kernel::units::{CpuId, KHz};
use risetime_trace::Event;

/// `state` of `cpu_idle` when the CPU has left idle.
const IDLE_EXIT: i64 = 0xffff_ffff;
/// The deepest idle state that a kernel can have (`CPUIDLE_STATE_MAX`).
const IDLE_STATES: i64 = 10;

pub(super) const ROWS: &[Row] = &[
    Row {
        names: &["cpu_frequency"],
        fields: &[&["cpu_id"], &["state"]],
        signals: &["cpu_frequency"],
        surveyed: true,
        take: |story, stamp, fields| {
            if let (Some(cpu), Some(khz)) = (cpu(fields, 0), positive(fields, 1)) {
                story.runs_at(stamp.at, cpu, khz);
            }
        },
    },
    Row {
        names: &["cpu_frequency_limits"],
        fields: &[&["cpu_id"], &["min", "min_freq"], &["max", "max_freq"]],
        signals: &["cpu_frequency_limits"],
        surveyed: true,
        take: |story, stamp, fields| {
            let limits = (cpu(fields, 0), positive(fields, 1), positive(fields, 2));
            if let (Some(cpu), Some(min), Some(max)) = limits {
                story.limited(stamp.at, cpu, KHz(min), KHz(max));
            }
        },
    },
    Row {
        names: &["cpu_idle"],
        fields: &[&["cpu_id"], &["state"]],
        signals: &["cpu_idle"],
        surveyed: false,
        take: idle,
    },
    Row {
        names: &["thermal_temperature"],
        fields: &[&["id", "thermal_zone_id"], &["temp"], &["thermal_zone"]],
        signals: &["thermal_temperature"],
        surveyed: false,
        take: |story, stamp, fields| {
            let millicelsius = fields.number(1).and_then(|t| u32::try_from(t).ok());
            let zone = fields.number(0).and_then(|zone| u32::try_from(zone).ok());
            if let (Some(millicelsius), Some(zone)) = (millicelsius, zone.or(Some(0))) {
                story.emit(stamp.at, &Event::Temperature { zone, millicelsius });
            }
        },
    },
    Row {
        // The state of a cooling device, which is no frequency: what it caps, `cpu_frequency_limits` tells.
        names: &["cdev_update"],
        fields: &[&["type"], &["target"]],
        signals: &["cdev_update"],
        surveyed: false,
        take: |story, stamp, fields| {
            let device = fields.text(0).map(readable);
            if let (Some(device), Some(target)) = (device, fields.number(1)) {
                story.counter(stamp, &format!("cooling {device}"), target);
            }
        },
    },
];

fn cpu(fields: &dyn Fields, place: usize) -> Option<u32> {
    fields.number(place).and_then(|cpu| u32::try_from(cpu).ok())
}

fn positive(fields: &dyn Fields, place: usize) -> Option<u64> {
    fields.number(place).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0)
}

fn idle(story: &mut Story<'_>, stamp: &Stamp<'_>, fields: &dyn Fields) {
    let (Some(cpu), Some(state)) = (cpu(fields, 0), fields.number(1)) else { return };
    let state = match state & 0xffff_ffff {
        IDLE_EXIT => None,
        state if state < IDLE_STATES => Some(state as u32),
        _ => return,
    };
    story.emit(stamp.at, &Event::Idle { cpu: CpuId(cpu), state });
}
