//! The Pixel modules' rules, held to numbers that a script of its own reckons from what is written
//! about them (pixel/README.md).

use risetime_kernel::approximate::{approximate_runtime, approximate_util_avg};
use risetime_kernel::cpu_util::{CpuUtilType, RqUtil};
use risetime_kernel::pelt::Decay;
use risetime_kernel::pixel::{
    Ask, Estimate, RampUp, RateLimits, Room, Sampling, apply_dvfs_headroom, fits_by_margin,
    opp_for, pixel_em, response_time_ms_nom, schedutil_cpu_util, util_est_update, util_fits_cpu,
};
use risetime_kernel::units::{Capacity, KHz, Util};

const ROWS: &str = include_str!("pixel/vectors.csv");
const MS32: &Decay = &Decay::MS32;

fn room(name: &str, share: u64) -> Option<Room> {
    match name {
        "auto" => Some(Room::Auto(share)),
        "tapered" => Some(Room::Tapered(share)),
        "constant" => Some(Room::Constant(share)),
        _ => None,
    }
}

fn limit(n: &[u64]) -> Vec<String> {
    let limits = RateLimits { up_ns: n[0], down_ns: n[1], scale_pow: n[2] as u32 };
    let held = limits.sugov_up_down_rate_limit(n[3], KHz(n[4]), KHz(n[5]));
    vec![u8::from(held).to_string()]
}

fn ramp(n: &[u64]) -> Vec<String> {
    let mut task = RampUp::default();
    task.wakes(0, Util(n[0]));
    let mut at = 0;
    let mut each = |piece: &u64| {
        at += piece;
        let new = task.update_util_est_invariance(MS32, at, Util(n[1]), n[2] as u32);
        new.map_or("none".to_string(), |util| util.0.to_string())
    };
    n[4..4 + n[3] as usize].iter().map(&mut each).collect()
}

fn sample(n: &[u64]) -> Vec<String> {
    let est = Estimate { enqueued: n[0] as u32, ewma: n[1] as u32 };
    let rules = Sampling { auto: n[5] == 1, disabled: n[6] == 1, ignored: n[7] == 1 };
    let (est, unchanged) = util_est_update(est, Util(n[2]), n[3] == 1, Capacity(n[4]), rules);
    vec![est.enqueued.to_string(), est.ewma.to_string(), u8::from(unchanged).to_string()]
}

fn fits(n: &[u64]) -> Vec<String> {
    let (capacity, left) = (Capacity(n[3]), Capacity(n[4]));
    let own = fits_by_margin(Util(n[0]), left, n[5]);
    let all = util_fits_cpu(own, Util(n[0]), (Util(n[1]), Util(n[2])), capacity, left);
    vec![u8::from(own).to_string(), u8::from(all).to_string()]
}

fn asks(name: &str, n: &[u64]) -> Vec<String> {
    let (room, capacity) = (room(name, n[0]), Capacity(n[1]));
    let ask = Ask { decay: MS32, response_time_mult: n[2], room, capacity };
    let rq = RqUtil {
        rt: Util(n[4]),
        dl: Util(n[5]),
        irq: Util(n[6]),
        dl_running_bw: n[7],
        uclamp_is_used: true,
        ..RqUtil::default()
    };
    let clamp = |util: Util| util.max(Util(n[8])).min(Util(n[9]));
    let of = |kind| schedutil_cpu_util(&ask, Util(n[3]), &rq, kind, clamp).0.to_string();
    vec![of(CpuUtilType::Frequency), of(CpuUtilType::Energy)]
}

fn model(n: &[u64]) -> Vec<String> {
    let k = n[0] as usize;
    let of = |i: usize| (KHz(n[1 + i]), Capacity(n[1 + k + i]), n[1 + 2 * k + i]);
    let em = pixel_em((0..k).map(of));
    let wanted = KHz(n[1 + 3 * k]);
    let chosen = opp_for(&em, wanted, true).expect("an OPP").freq.0.to_string();
    em.iter().map(|opp| opp.cost.to_string()).chain([chosen]).collect()
}

/// What the code says to a row, whose last fields are the script's answer.
fn answer(kind: &str, fields: &[&str]) -> Vec<String> {
    let named = matches!(kind, "headroom" | "asks");
    let numbers = fields[usize::from(named)..].iter().map_while(|f| f.parse().ok());
    let n: Vec<u64> = numbers.collect();
    let one = |value: u64| vec![value.to_string()];
    match kind {
        "runtime" => one(approximate_runtime(MS32, Util(n[0]))),
        "after" => one(approximate_util_avg(MS32, Util(n[0]), n[1]).0),
        "nominal" => {
            let capacities: Vec<Capacity> = n[..n.len() - 1].iter().map(|c| Capacity(*c)).collect();
            one(response_time_ms_nom(MS32, &capacities))
        }
        "headroom" => {
            let room = room(fields[0], n[0]).expect("a headroom");
            one(apply_dvfs_headroom(MS32, Util(n[1]), Capacity(n[2]), room, n[3] == 1).0)
        }
        "limit" => limit(&n),
        "ramp" => ramp(&n),
        "sample" => sample(&n),
        "fits" => fits(&n),
        "asks" => asks(fields[0], &n),
        "model" => model(&n),
        other => panic!("a row of kind {other}"),
    }
}

#[test]
fn every_number_of_the_script_is_the_codes() {
    let mut rows = 0;
    for row in ROWS.lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let own = answer(fields[0], &fields[1..]);
        assert_eq!(own, fields[fields.len() - own.len()..], "{row}");
        rows += 1;
    }
    assert!(rows >= 10_000, "{rows}");
}
