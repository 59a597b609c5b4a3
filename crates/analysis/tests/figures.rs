//! Traces written by hand: levels, rise, migrations, CPUs and energy, curves.

use crate::common::*;
use risetime_analysis::*;
use risetime_kernel::units::*;
use risetime_trace::{Event, TraceSink, Why};

// ---- levels, rise, migrations ----

#[test]
fn levels_and_when_they_were_reached() {
    let options = Options { levels: vec![700, 450, 30], ..Options::default() };
    let t = Trace::with(options).freq(0, 500).freq(2, 1000).new_task(T, 0, 1024).util(T, 0);
    let t = t.at(MS).run(0, T).at(2 * MS).util(T, 30).at(3 * MS).util(T, 449);
    let t = t.at(4 * MS).util(T, 450).freq(0, 1000).at(5 * MS).preempt(0, T);
    let t = t.migrate(T, 0, 3, Why::Misfit).at(6 * MS).run(3, T).util(T, 800).at(7 * MS);
    let r = t.freq(2, 2000).freq(2, 1000).at(8 * MS).end();
    let (t, _) = first(&r);
    let levels: Vec<_> = t.reach.iter().map(|r| (r.what, r.after_ms)).collect();
    let wanted = [
        (Level::Util(30), Some(2.0)),
        (Level::Util(450), Some(4.0)),
        (Level::Util(700), Some(6.0)),
        (Level::Util(1000), None),
        (freq_level(0, 500), Some(1.0)),
        (freq_level(0, 1000), Some(4.0)),
        (freq_level(2, 1000), Some(6.0)),
        // 2000 MHz for no time at all: it never ran there.
        (freq_level(2, 2000), None),
        (Level::Capacity(512), Some(1.0)),
        (Level::Capacity(1024), Some(6.0)),
    ];
    assert_eq!(levels, wanted);
    let moves: Vec<_> = t.migrations.iter().map(|m| (m.at_ms, m.from.0, m.to.0, m.why)).collect();
    assert_eq!(moves, [(5.0, 0, 3, "misfit")]);
}

/// First on the big CPU at its top: every lower OPP of that domain is reached with it.
#[test]
fn a_high_opp_reaches_all_below() {
    let t = Trace::new().freq(2, 2000).new_task(T, 2, 1024).at(MS).run(2, T).at(3 * MS);
    let r = t.end();
    let (t, _) = first(&r);
    for level in [freq_level(2, 1000), freq_level(2, 2000), Level::Capacity(512)] {
        assert_eq!(after(t, level), Some(1.0), "{level:?}");
    }
    assert_eq!(after(t, freq_level(0, 500)), None);
}

/// From 0.25 on the little CPU to 1 on the big one: a step, 0.8 ticks from 10 to 90 %.
#[test]
fn rise_of_delivered_performance() {
    let t = Trace::new().freq(0, 500).freq(2, 2000).new_task(T, 0, 1024).run(0, T).at(9 * MS);
    let t = t.preempt(0, T).migrate(T, 0, 2, Why::Misfit).run(2, T).at(12 * MS);
    assert_eq!(first(&t.end()).0.perf_10_90_ms, Some(0.8));
    let r = Trace::new().freq(0, 500).new_task(T, 0, 1024).run(0, T).at(9 * MS).end();
    assert_eq!(first(&r).0.perf_10_90_ms, None);
}

/// A wakeup on another CPU is one migration, whether traced as such, before or after.
#[test]
fn a_migration_at_wakeup_counts_once() {
    let run = |before: bool, after: bool| {
        let t = Trace::new().freq(2, 2000).new_task(T, 0, 1024).run(0, T).at(MS).sleep(0, T);
        let mut t = t.at(21 * MS);
        if before {
            t = t.migrate(T, 0, 2, Why::Energy);
        }
        t = t.event(Event::Wakeup { task: T, cpu: CpuId(2), why: Why::Energy });
        if after {
            t = t.migrate(T, 0, 2, Why::Energy);
        }
        let r = t.run(2, T).at(30 * MS).end();
        let (t, b) = first(&r);
        assert_eq!((t.bursts, b.t0_ms), (2, 21.0));
        t.migrations.iter().map(|m| (m.at_ms, m.from.0, m.to.0, m.why)).collect::<Vec<_>>()
    };
    for (before, after) in [(true, false), (false, true), (false, false), (true, true)] {
        assert_eq!(run(before, after), [(0.0, 0, 2, "energy")], "{before} {after}");
    }
}

// ---- CPUs and energy ----

#[test]
fn cpus_over_the_whole_run() {
    let system = TaskId(9);
    let t = Trace::new().freq(0, 1000).freq(2, 1000).idle(0, Some(0)).idle(2, Some(1)).at(2 * MS);
    let t = t.event(Event::TaskNew {
        task: system,
        comm: "kthread".into(),
        user: false,
        cpu: CpuId(0),
        why: Why::PrevCpu,
        max_speed: Util(1024),
    });
    let t = t.idle(0, None).run(0, system).at(3 * MS).freq(0, 500).at(5 * MS).sleep(0, system);
    let r = t.idle(0, Some(1)).at(10 * MS).end();
    assert_eq!(r.tasks.len(), 0);
    let c = &r.cpus[0];
    assert_eq!(c.freq, [(KHz(500_000), 7.0), (KHz(1_000_000), 3.0)]);
    assert_eq!(c.idle, [("wfi".to_owned(), 2.0), ("off".to_owned(), 5.0)]);
    close(c.busy_ms, 3.0);
    close(c.energy_mj.unwrap(), 2.0 * 0.002 + 1.0 * 0.040 + 2.0 * 0.010);
    // Idle in no recorded state: the power of the shallowest, and an entry of its own.
    assert_eq!(
        (r.cpus[1].domain, &r.cpus[1].idle[..]),
        (CpuId(0), &[("none".to_owned(), 10.0)][..])
    );
    close(r.cpus[1].energy_mj.unwrap(), 10.0 * 0.002);
    close(r.cpus[2].energy_mj.unwrap(), 0.0);
    close(r.energy_mj.unwrap(), 0.064 + 0.020 + 0.020);
    assert_eq!(r.end_ms, 10.0);
}

/// A state for which others have to be asleep takes its power while they are; each CPU's own list tells what it asked for.
#[test]
fn a_cluster_that_is_not_asleep_takes_the_power_of_its_cpus() {
    let mut platform = (*platform()).clone();
    let idle = &mut platform.domains[0].idle;
    idle[1].power = MicroWatts(500);
    idle[1].together = Some(risetime_model::platform::Together::Domain);
    let mut t = Trace::new();
    t.to = Analyzer::new(Options::default());
    t.to.header(&on(platform));
    let t = t.freq(0, 1000).freq(2, 1000).new_task(T, 0, 1024).run(0, T).idle(1, Some(1));
    let t = t.at(2 * MS).sleep(0, T).idle(0, Some(0)).at(5 * MS).idle(0, None).idle(0, Some(1));
    // An interrupt wakes the cluster.
    let t = t.at(9 * MS).event(Event::Irq { cpu: CpuId(0), enters: true });
    let t = t.at(10 * MS).event(Event::Irq { cpu: CpuId(0), enters: false });
    let r = t.at(12 * MS).idle(1, None).at(13 * MS).end();
    assert_eq!(r.cpus[1].idle, [("none".to_owned(), 1.0), ("off".to_owned(), 12.0)]);
    // 5 ms beside a CPU that is not as deep, 4 and 2 with all, 1 beside an interrupt, 1 awake.
    close(r.cpus[1].energy_mj.unwrap(), 7.0 * 0.002 + 6.0 * 0.0005);
    close(r.cpus[0].energy_mj.unwrap(), 3.0 * 0.040 + 4.0 * 0.002 + 6.0 * 0.0005);
}

#[test]
fn an_unknown_start_frequency_is_said() {
    let r = Trace::new().new_task(T, 2, 1024).run(2, T).at(MS).freq(2, 2000).at(2 * MS).end();
    assert_eq!(
        r.notes,
        ["CPU2: no frequency recorded before it was first used; counted as 1000000 kHz"]
    );
    assert_eq!(running(first(&r).0), [(2, 1000, 1.0), (2, 2000, 1.0)]);
}

/// 1500 MHz is no OPP: its own speed, the power of the next OPP.
#[test]
fn a_frequency_between_opps() {
    let r = Trace::new().freq(2, 1500).new_task(T, 2, 1024).run(2, T).at(4 * MS).end();
    let (t, b) = first(&r);
    close(b.debt_ms, 1.0);
    close(t.whole.energy_mj.unwrap(), 4.0 * 0.5);
    assert_eq!(running(t), [(2, 1500, 4.0)]);
    assert_eq!(after(t, freq_level(2, 1000)), Some(0.0));
    assert_eq!(after(t, freq_level(2, 2000)), None);
}

#[test]
fn events_of_cpus_that_are_not_there_are_left_out() {
    let r = Trace::new().freq(99, 1000).new_task(T, 0, 1024).wake(T, u32::MAX).at(MS).end();
    assert_eq!(r.notes, ["2 events left out: they name a CPU that round does not have"]);
    close(first(&r).0.whole.wait_ms, 1.0);
}

// ---- timeline ----

#[test]
fn the_timeline_begins_with_the_reported_burst() {
    let t = Trace::with(Options { timeline: true, ..Options::default() });
    let t = t.freq(0, 500).freq(2, 2000).new_task(T, 0, 1024).util(T, 7).run(0, T).at(MS);
    let t = t.sleep(0, T).at(11 * MS).wake(T, 0).util(T, 5).at(12 * MS).run(0, T).at(13 * MS);
    let t = t.freq(0, 1000).at(14 * MS).util(T, 6).preempt(0, T).migrate(T, 0, 2, Why::Misfit);
    let (_, timeline) = t.run(2, T).at(20 * MS).end_with_timeline();
    let timeline = timeline.unwrap();
    assert_eq!(timeline.util, [(11.0, 5), (14.0, 6), (20.0, 6)]);
    let speed = [(11.0, 0.0), (12.0, 256.0), (13.0, 512.0), (14.0, 1024.0), (20.0, 1024.0)];
    assert_eq!(timeline.speed, speed);
    let (c0, c2) = (Some(CpuId(0)), Some(CpuId(2)));
    assert_eq!(timeline.cpu, [(11.0, None), (12.0, c0), (14.0, c2), (20.0, c2)]);
    let (low, mid, top) = (KHz(500_000), KHz(1_000_000), KHz(2_000_000));
    let freq = vec![
        (CpuId(0), vec![(11.0, low), (13.0, mid), (20.0, mid)]),
        (CpuId(2), vec![(11.0, top), (20.0, top)]),
    ];
    assert_eq!(timeline.freq, freq);
}

#[test]
fn no_timeline_without_asking_and_none_without_tasks() {
    assert!(Trace::new().new_task(T, 0, 1024).at(MS).end_with_timeline().1.is_none());
    let t = Trace::with(Options { timeline: true, ..Options::default() });
    assert!(t.at(MS).end_with_timeline().1.is_none());
}

/// A machine that says nothing of its first domain's power.
fn with_unknown_power(idle_too: bool) -> Trace {
    let mut platform = (*platform()).clone();
    let d = &mut platform.domains[0];
    d.opps.iter_mut().for_each(|o| o.power = MicroWatts(0));
    if idle_too {
        d.idle.iter_mut().for_each(|s| s.power = MicroWatts(0));
    }
    let mut t = Trace::new();
    t.to.header(&on(platform));
    t
}

#[test]
fn unknown_power_is_no_energy_and_not_none() {
    let ran = |t: Trace, cpu| t.freq(cpu, 1000).new_task(T, cpu, 1024).run(cpu, T).at(5 * MS).end();
    let r = ran(with_unknown_power(false), 0);
    assert_eq!((r.cpus[0].energy_mj, first(&r).0.whole.energy_mj, r.energy_mj), (None, None, None));
    close(r.cpus[1].energy_mj.unwrap(), 5.0 * 0.002);
    // What ran elsewhere is known, and so is what idles in a state whose power is known.
    let r = ran(with_unknown_power(false), 2);
    close(first(&r).0.whole.energy_mj.unwrap(), 5.0 * 0.1);
    close(r.energy_mj.unwrap(), 5.0 * (0.1 + 3.0 * 0.002));
    // Of a domain that nothing is known of, idle power is not either.
    let r = ran(with_unknown_power(true), 2);
    assert_eq!((r.cpus[0].energy_mj, r.energy_mj), (None, None));
}

#[test]
fn a_handler_takes_what_running_takes() {
    let irq = |t: Trace, enters| t.event(Event::Irq { cpu: CpuId(0), enters });
    let t = Trace::new().freq(0, 1000).idle(0, Some(0)).at(3 * MS).idle(0, None);
    let t = irq(irq(t, true).at(5 * MS), false).idle(0, Some(0));
    let r = t.at(10 * MS).end();
    close(r.cpus[0].energy_mj.unwrap(), 8.0 * 0.002 + 2.0 * 0.040);
    close(r.cpus[0].busy_ms, 2.0);
}
