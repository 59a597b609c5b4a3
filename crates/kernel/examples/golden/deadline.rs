//! deadline.json.

use risetime_kernel::KernelRev;
use risetime_kernel::deadline::DlRq;
use risetime_kernel::rt::RtBandwidth;
use risetime_kernel::units::Span;
use serde_json::Value;

use super::tally::{Tally, u};

/// Checks what a task that reclaims is charged: up to 6.4, and since.
pub fn check(json: &Value) -> Tally {
    let mut tally = Tally::default();
    for (i, row) in tally.rows_of(json, "grub", 9).iter().enumerate() {
        let mut rq = DlRq::new(RtBandwidth { period: Span(1), runtime: None });
        (rq.this_bw, rq.running_bw) = (u(row[0]), u(row[1]));
        (rq.extra_bw, rq.max_bw, rq.bw_ratio) = (u(row[2]), u(row[3]), u(row[4]));
        let charged = |rev| i128::from(rq.grub_reclaim(rev, u(row[5]), u(row[6])));
        let got = [KernelRev::V6_1, KernelRev::V7_3].map(charged);
        tally.compare(&format!("grub[{i}]"), row, 7, &got);
    }
    tally
}
