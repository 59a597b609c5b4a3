//! cpuidle.json.

use risetime_kernel::KernelRev;
use risetime_kernel::cpuidle::{CPUIDLE_STATE_MAX, IdleGovernor, IdleState, Limits, Sleep};
use risetime_kernel::units::Span;
use serde_json::Value;

use super::tally::{Tally, u};

/// Checks what `menu` and `teo` select, in sequences of sleeps that they remember.
pub fn check(json: &Value) -> Tally {
    let mut tally = Tally::default();
    for name in IdleGovernor::NAMES {
        for (place, sequence) in tally.groups(json, name) {
            let Some(rev) = rev_of(sequence) else {
                tally.row(false, || format!("{place}: no kernel"));
                continue;
            };
            sleeps(&mut tally, &place, sequence, IdleGovernor::named(name, rev));
        }
    }
    tally
}

fn rev_of(sequence: &Value) -> Option<KernelRev> {
    let mut numbers = sequence["kernel"].as_str()?.split('.').map(|n| n.parse().ok());
    Some(KernelRev::new(numbers.next()??, numbers.next()??))
}

fn sleeps(tally: &mut Tally, place: &str, sequence: &Value, mut governor: IdleGovernor) {
    let Some(tick) = tally.number(place, sequence, "tick_ns") else { return };
    let tick = Span(u(tick));
    let rows = tally.rows_of(sequence, "states", 2);
    let state = |row: &Vec<i128>| IdleState {
        target_residency: Span(u(row[0])),
        exit_latency: Span(u(row[1])),
    };
    let states: Vec<IdleState> = rows.iter().map(state).take(CPUIDLE_STATE_MAX).collect();
    for (i, row) in tally.rows_of(sequence, "rows", 8).iter().enumerate() {
        let sleep = Sleep {
            next_timer: Some(Span(u(row[0]))),
            next_tick: Span(u(row[1])),
            tick_stopped: row[2] != 0,
            tick,
            utilized: row[3] != 0,
            limits: Limits::NONE,
        };
        let selected = governor.select(&states, sleep);
        // With the tick stopped it stays so, whatever the governor says (`cpuidle_idle_call`).
        let stops = selected.stop_tick || sleep.tick_stopped;
        let got = [selected.state as i128, i128::from(stops)];
        tally.compare(&format!("{place} row {i}"), row, 6, &got);
        // Go on from what the kernel did, so that one difference does not make all later ones.
        let state = usize::try_from(row[6]).unwrap_or(0);
        governor.update(&states, state, Span(u(row[4])), row[5] != 0, tick);
    }
}
