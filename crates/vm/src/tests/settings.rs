//! Settings of an experiment: each reaches the guest, or is refused with its reason.

use super::*;
use risetime_model::settings::{Home, Param};

#[test]
fn settings_that_only_a_simulation_has_are_refused() {
    let of =
        |policy: &str| planned(&experiment(policy), &[]).map(|_| ()).map_err(|e| e.to_string());
    assert_eq!(of("linux-7.2+placement=fair+background_util=0"), Ok(()));
    for setting in [
        "placement=prev",
        "start_util=0",
        "background_util=10",
        "first_tick_ns=5",
        "irq_period_us=1000",
        "hw_capped_khz.policy4=600000",
        "freq_invariance=no",
    ] {
        let e = of(&format!("linux-7.2+{setting}")).unwrap_err();
        assert!(
            e.starts_with(&format!("setting {setting}: only the simulator has this setting")),
            "{e}"
        );
    }
    let e = of("linux-7.2+governor=schedutil-2016").unwrap_err();
    assert!(e.contains("governor=schedutil-2016: no stock kernel has this governor"), "{e}");
}

#[test]
fn a_class_that_no_kernel_has_is_refused() {
    let mut e = experiment("linux-7.2");
    let text = r#"{"tasks": {"a": {"run": 5}, "b": {"phases": {"p": {"policy": "SCHED_HIGH", "run": 5}}}}}"#;
    e.workload = Arc::new(Workload::parse(text, "w").unwrap());
    let e = planned(&e, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("`b`: SCHED_HIGH is a proof of concept, no stock kernel has it"), "{e}");
}

#[test]
fn servers_of_groups_are_refused_as_no_kernel_has_them() {
    let mut e = experiment("linux-7.2");
    let text = r#"{"taskgroups": {"/a": {"rt_runtime_us": 5000, "rt_period_us": 10000}}, "tasks": {"a": {"taskgroup": "/a", "run": 5}}}"#;
    e.workload = Arc::new(Workload::parse(text, "w").unwrap());
    let e = planned(&e, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("w: task group `/a`: `rt_runtime_us` is of the series on real-time groups (HCBS), no stock"), "{e}");
}

/// Of all there are: none is dropped in silence.
#[test]
fn every_setting_reaches_the_guest_or_is_refused() {
    let job_with = |change: &str| {
        let of = |kernel: &str| {
            let policy = Policy::from_arg(&format!("{kernel}{change}")).unwrap();
            // Without thermal zones there is nothing that their settings could set.
            let mut platform = Platform { thermal: vec![zone()], ..Platform::load("m1").unwrap() };
            platform.domains[1].opps.last_mut().unwrap().turbo = true;
            let settings = risetime_sim::resolve(&platform, &policy).ok()?;
            let platform = Arc::new(platform);
            let e = Experiment {
                platform: Arc::clone(&platform),
                settings,
                policy,
                ..experiment(kernel)
            };
            let plain = Experiment { platform, ..experiment(kernel) };
            let told = |e: &Experiment| plan::command_line(e, &risetime_sim::catalogue());
            let job = |e: &Experiment| planned(e, &[]).map(|p| p.job.to_text() + &told(e));
            Some((job(&e), job(&plain).unwrap()))
        };
        // The second one has the tunables of CFS.
        of("linux-7.2").or_else(|| of("linux-6.1"))
    };
    let catalogue = risetime_sim::catalogue();
    let (mut given, mut refused) = (Vec::new(), Vec::new());
    // Settings that need `irq_period_us`, `rt_tracking`, `sched_fair_class`, `power_hal`, a cap, a capacity of each OPP or each other beside
    // them, which are refused.
    let of_cap = |name: &str| {
        let caps = ["hw_capped", "firmware_capped", "power_limit", "scaling_max_freq"];
        let times = ["_from_ms", "_until_ms", "_period_us", "_on_us"];
        caps.iter().any(|c| name.strip_prefix(c).is_some_and(|time| times.contains(&time)))
    };
    let alone = |name: &str| {
        ![
            "opp_capacity",
            "hw_capped_above_millicelsius",
            "hw_capped_below_millicelsius",
            "irq_us",
            "sched_pelt_multiplier_to",
            "sched_pelt_multiplier_change_ms",
            "sched_time_avg_ms",
            "rr_interval",
            "sched_interactive",
            "sched_yield_type",
            "rq_lock_ns",
            // Of machines whose hardware decides, which this one is not.
            "intel_pstate",
            "amd_pstate",
            "energy_performance_preference",
            "hardware_ramp",
            // How the simulator computes, and nothing of what it simulates: 0 and 1 are the same guest.
            "short_ways",
        ]
        .contains(&name)
            && !of_cap(name)
            && !name.starts_with("adpf_")
    };
    // Of the modules of Pixel phones, without which they are refused.
    let of_modules = |p: &Param| matches!(p.home, Home::Patched(Some(path), _) if path.starts_with("/proc/vendor_sched/"));
    for (group, param) in catalogue.params().filter(|(_, p)| alone(p.name) && !of_modules(p)) {
        let (numbers, names) = param.range.parts();
        let numbers = numbers.into_iter().flat_map(|(low, high)| [high, low + 2, low]);
        let names = names.iter().rev().map(|n| n.to_string());
        let values: Vec<String> = numbers.map(|n| n.to_string()).chain(names).collect();
        let owner = match group.owner {
            Some((key, name)) if name != "schedutil" => format!("+{key}={name}"),
            _ => String::new(),
        };
        // A value that is the default, or neutral, changes no job.
        let told = |value: &String| {
            let (job, plain) = job_with(&format!("{owner}+{}={value}", param.name))?;
            match job {
                Ok(job) => (job != plain).then_some(None),
                Err(e) => Some(Some(e.to_string())),
            }
        };
        // Some values may be refused: of the governors those that are not mainline's.
        let all: Vec<Option<String>> = values.iter().filter_map(told).collect();
        match all.iter().find(|told| told.is_none()).or(all.first()) {
            Some(None) => given.push(param.name),
            Some(Some(e)) => {
                // Of a tracker or governor no stock kernel has, it is that which is refused.
                let named = |key: &str| e.starts_with(&format!("setting {key}="));
                assert!(named(param.name) || group.owner.is_some_and(|(key, _)| named(key)), "{e}");
                refused.push(param.name);
            }
            None => panic!("{}: no value of {values:?} reaches the guest", param.name),
        }
    }
    for name in
        ["governor", "sched_energy_aware", "base_slice_ns", "sched_latency_ns", "rate_limit_us"]
    {
        assert!(given.contains(&name), "{name}: given are {given:?}");
    }
    assert!(refused.contains(&"preempt") && refused.contains(&"util_est_running"), "{refused:?}");
}

/// A setting of the whole system is none of the governor's, though nobody else asks for it.
#[test]
fn the_clamp_of_real_time_tasks_is_written_to_its_sysctl() {
    let path = "/proc/sys/kernel/sched_util_clamp_min_rt_default";
    let plan = |policy: &str| planned(&experiment(policy), &[]).unwrap();
    let set = plan("linux-7.2+sched_util_clamp_min_rt_default=200");
    assert!(set.job.set.contains(&(path.into(), "200".into())), "{:?}", set.job.set);
    let read_back = ("sched_util_clamp_min_rt_default".to_string(), path.to_string());
    assert!(set.settings.contains(&read_back));
    assert!(!set.job.set.iter().any(|(p, _)| p.contains("cpufreq/schedutil")));
    assert!(plan("linux-7.2").job.read.contains(&path.to_string()));
}

/// Left as it is where nobody says otherwise, and not asked for where there is none.
#[test]
fn whether_tasks_gather_by_cache_is_as_the_experiment_says() {
    let plan = |policy: &str| planned(&experiment(policy), &[]).unwrap();
    let path = crate::plan::LLC_BALANCING.to_string();
    let set = |policy: &str| {
        let job = plan(policy).job;
        let set = job.set.into_iter().find(|(p, _)| *p == path).map(|(_, value)| value);
        (set, job.read.contains(&path))
    };
    assert_eq!(set("linux-7.2"), (None, true));
    assert_eq!(set("linux-7.3+sched_cache=0"), (Some("0".into()), false));
    assert_eq!(set("linux-6.12"), (None, false));
    let tolerance = "/sys/kernel/debug/sched/llc_balancing/aggr_tolerance".to_string();
    let job = plan("linux-7.2+llc_aggr_tolerance=100").job;
    assert!(job.set.contains(&(tolerance, "100".into())), "{:?}", job.set);
    // A kernel built without it says so, and the run that reader.
    let rig = Rig::new("caches", "cp $DIR/said answer");
    let mut values = obedient("linux-7.2");
    values.insert(path, "!No such file or directory".into());
    fs::write(rig.dir.join("said"), answer(&values)).unwrap();
    let notes = rig.run("linux-7.2").0.unwrap().notes;
    assert!(notes.iter().any(|note| note.contains("CONFIG_SCHED_CACHE")), "{notes:?}");
}

/// As the kernel checks at each write.
#[test]
fn the_runtime_of_real_time_tasks_is_never_above_their_period() {
    let written = |set: &str| -> Vec<String> {
        let e = experiment(&format!("linux-7.2{set}"));
        let job = planned(&e, &[]).unwrap().job;
        let rt = job.set.into_iter().filter_map(|(path, value)| {
            path.strip_prefix("/proc/sys/kernel/sched_rt_").map(|name| format!("{name}={value}"))
        });
        rt.collect()
    };
    assert_eq!(written(""), [""; 0]);
    let short = "+sched_rt_period_us=10000+sched_rt_runtime_us=5000";
    assert_eq!(written(short), ["runtime_us=5000", "period_us=10000"]);
    let long = "+sched_rt_period_us=4000000+sched_rt_runtime_us=-1";
    assert_eq!(written(long), ["period_us=4000000", "runtime_us=-1"]);
}

/// `schedfreq` and `schedutil-2016` have settings of these names too, which no stock kernel has.
#[test]
fn a_tunable_is_looked_up_at_the_governor_in_use() {
    for governor in ["ondemand", "conservative"] {
        let said = format!(
            "linux-7.2+governor={governor}+sampling_rate=20000+sampling_down_factor=2+ignore_nice_load=7"
        );
        let job = planned(&experiment(&said), &[]).expect("a stock kernel has them").job;
        let tunable = |name: &str| format!("{}/{governor}/{name}", crate::plan::CPUFREQ);
        // More than 1 is 1, and reads back as that.
        for (name, value) in
            [("sampling_rate", "20000"), ("sampling_down_factor", "2"), ("ignore_nice_load", "1")]
        {
            assert!(job.set.contains(&(tunable(name), value.into())), "{name}: {:?}", job.set);
        }
    }
}

/// As the kernel checks at each write; 80 and 20 % are there at boot.
#[test]
fn the_lower_threshold_is_never_written_above_the_upper_one() {
    let written = |set: &str| -> Vec<String> {
        let e = experiment(&format!("linux-7.2+governor=conservative{set}"));
        let job = planned(&e, &[]).unwrap().job;
        let threshold = |(path, value): (String, String)| {
            let name = path.rsplit('/').next().unwrap_or_default().to_string();
            name.ends_with("_threshold").then(|| format!("{name}={value}"))
        };
        job.set.into_iter().filter_map(threshold).collect()
    };
    let low = "+up_threshold=15+down_threshold=10";
    assert_eq!(written(low), ["down_threshold=10", "up_threshold=15"]);
    let high = "+up_threshold=95%+down_threshold=85%";
    assert_eq!(written(high), ["up_threshold=95", "down_threshold=85"]);
}
