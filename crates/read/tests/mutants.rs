//! Readers meet files that nobody wrote: some thousand of them in every run of the tests, any number by the example `fuzz`.

mod support;

use risetime_read::{Options, Source, read};
use support::checked::Checked;
use support::parts::Parts;
use support::{Draws, made, mutate};

/// Texts of dialects of which no file was made.
const SYSTRACE: &str = "<!DOCTYPE html>\n<html>\n<script>\n  var linuxPerfData = \"\\\n# tracer: nop\\n\\\n \
    kworker/0:0-13696 (  611) [000] d..3 50260.647590: sched_wakeup: comm=mm/0 pid=95 prio=120 success=1 target_cpu=000\\n\\\n \
    kworker/0:0-13696 (  611) [000] d..3 50260.647610: sched_switch: prev_comm=kworker/0:0 prev_pid=13696 prev_prio=120 prev_state=S ==> next_comm=mm/0 next_pid=95 next_prio=120\\n\\\n \
    mm/0-95 (-----) [000] ...1 50260.648000: tracing_mark_write: B|95|draw\\n\\\n \
    mm/0-95 (-----) [000] ...1 50260.649000: tracing_mark_write: C|95|frames|3\\n\\\n";

#[test]
fn no_bytes_make_a_reader_panic_or_break_the_rules_of_traces() {
    let parts = Parts::of(&made("v6.dat"));
    let files = [
        made("v6.dat"),
        made("v7-zstd.dat"),
        parts.version_7("none", &["", "one"], "mono"),
        parts.version_7("zlib", &[""], "mono"),
        parts.big_endian(),
        made("report.txt"),
        made("report-R.txt"),
        made("report-l.txt"),
        made("overwritten.txt"),
        SYSTRACE.into(),
    ];
    let mut draws = Draws(53);
    let mut read_some = 0;
    for n in 0..3000 {
        let mut bytes = files[n % files.len()].clone();
        mutate(&mut draws, &mut bytes);
        let length = bytes.len() as u64;
        let mut checked = Checked::default();
        if read(&Source::bytes("mutant", bytes), &mut checked, &Options::default()).is_ok() {
            read_some += 1;
            assert!(checked.events <= length + 1024, "{} events in {length} bytes", checked.events);
        }
    }
    assert!(read_some > 1000, "{read_some}");
}
