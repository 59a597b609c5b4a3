//! Placements of deadline tasks on drawn sets: big.LITTLE CBS beside global EDF, APEDF beside global EDF, and what is
//! refused where nothing fits. docs/real-time-schedulers.md has them on 240 and 200 each: the example `dl_sets`.

#[path = "dl_sets/sets.rs"]
mod sets;

use sets::{Draw, energy, more, under};

const GEDF: &str = "+dl_placement=gedf";
const BL: &str = "+dl_placement=bl-cbs";
const AP: &str = "+dl_placement=apedf-ff";

/// On the ODROID, of 60 sets: of 20 the interval ends within a percent of none, of 240 it is -6.6 to -5.0 %.
#[test]
fn big_little_cbs_takes_less_energy_than_global_edf() {
    let draw = Draw {
        platform: "odroid-xu4",
        tasks: 16,
        percents: &[10, 20, 30, 40, 50],
        seeds: 12,
        most: 90,
        work: 95,
    };
    let all = under(&draw, &[GEDF, BL]);
    let e = more(&all, 0, 1, energy).expect("all were taken");
    let (_, high) = e.interval.expect("of 60");
    assert!(high < 0.0, "{e:?}");
    let missed = |i: usize| all.iter().filter_map(|s| s[i]).map(|o| o.missed).sum::<u64>();
    assert!(missed(1) <= missed(0), "{} {}", missed(1), missed(0));
}

/// On equal CPUs, of 20 sets; where a set has a CPU for each task, and frequencies stay, nobody is late.
#[test]
fn apedf_keeps_deadlines_with_fewer_migrations_than_global_edf() {
    let draw = Draw {
        platform: "rpi4",
        tasks: 12,
        percents: &[30, 50, 60, 70],
        seeds: 5,
        most: 90,
        work: 95,
    };
    let [ff, wf] = ["ff", "wf"].map(|by| format!("+dl_placement=apedf-{by}+dl_frequency=admitted"));
    let all = under(&draw, &[GEDF, AP, &ff, &wf]);
    for set in &all {
        let [gedf, grub_pa, admitted @ ..] = &set[..] else { panic!("four") };
        let gedf = gedf.expect("admitted").migrations;
        for o in [grub_pa].into_iter().chain(admitted).map(|o| o.expect("admitted")) {
            assert!(o.migrations < gedf || gedf == 0, "{} of {gedf}", o.migrations);
        }
        for o in admitted.iter().map(|o| o.expect("admitted")) {
            assert_eq!((o.fallback, o.missed), (0, 0), "{o:?}");
        }
    }
}

/// Six tasks of 0.6 on four CPUs: few sets have a partition. Who adapts takes those, and nobody of them is late; global EDF takes all.
#[test]
fn where_nothing_fits_it_is_refused() {
    let draw = Draw { platform: "rpi4", tasks: 6, percents: &[92], seeds: 20, most: 90, work: 95 };
    let all = under(&draw, &[GEDF, "+dl_placement=apedf-ff+dl_frequency=admitted", BL]);
    assert!(all.iter().all(|s| s[0].is_some()) && all.iter().any(|s| s[1].is_none()));
    for o in all.iter().filter_map(|s| s[1]) {
        assert_eq!((o.missed, o.fallback), (0, 0), "{o:?}");
    }
    assert!(all.iter().any(|s| s[0].is_some_and(|o| o.late_ms > 0.0)), "soft by design");
}
