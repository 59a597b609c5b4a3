//! SIGINT, SIGTERM and SIGHUP end the command as they end any other, after what it has begun is gone: QEMU, halves of files,
//! directories of runs.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Listens from now on, by a thread of its own. One that was ignored when the command began (`nohup`) stays so.
pub fn listen() {
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let wanted = [SIGINT, SIGTERM, SIGHUP];
    let wanted = wanted.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let wanted: Vec<i32> = wanted.collect();
    // Where nobody can listen, a signal ends the command at once, and the next one removes what is left.
    let Ok(mut signals) = Signals::new(&wanted) else { return };
    for signal in wanted {
        // Without it who hears first of a QEMU that Ctrl-C has ended, too, may call that an error.
        let _ = signal_hook::flag::register(signal, risetime_model::output::ending());
    }
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            risetime_model::output::end();
            let _ = emulate_default_handler(signal);
        }
    };
    let _ = std::thread::Builder::new().name("signals".into()).spawn(wait);
}

/// The signals that a process ignores, by its `/proc/PID/status`: the first is bit 0.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_a_bit_each() {
        let status = "Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored(status), 0x1001);
        assert_eq!(ignored(""), 0);
    }
}
