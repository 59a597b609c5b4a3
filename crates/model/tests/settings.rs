//! Settings: defaults, ranges, and whose they are.

use crate::common::{check_transcript, entry};
use risetime_kernel::units::CpuId;
use risetime_model::settings::{ByFreq, Default, Group, Home, IntOrName, Neutral, Range};
use risetime_model::{Catalogue, Param, Platform, Policy, Settings, Value};

const fn param(name: &'static str, unit: &'static str, range: Range, default: Default) -> Param {
    Param { name, doc: "", unit, range, default, home: Home::Simulator(Neutral::None) }
}

const GENERAL: &[Param] = &[
    param(
        "governor",
        "",
        Range::OneOf(&["schedutil", "performance", "ondemand"]),
        Default::Name("schedutil"),
    ),
    param("first_cpu", "", Range::Int(0, 1023), Default::Unset),
    param("background_util", "of 1024", Range::Int(0, 1024), Default::Int(0)),
];
const SCHEDUTIL: &[Param] = &[param(
    "rate_limit_us",
    "µs",
    Range::Int(0, 1_000_000),
    Default::Derived("from the transition latency", |_, _| Some(Value::Int(10_000))),
)];
const TARGETS: ByFreq = ByFreq::new(param("targets", "%", Range::ByFreq(1, 100), Default::Unset));
const ROOM: IntOrName =
    IntOrName::new(param("room", "%", Range::IntOr(0, 400, &["mainline", "none"]), Default::Unset));
const ONDEMAND: &[Param] = &[
    param("up_threshold", "%", Range::Int(1, 100), Default::Int(95)),
    param("sampler", "", Range::OneOf(&["coarse", "fine"]), Default::Name("coarse")),
    TARGETS.0,
    ROOM.0,
];
const FINE: &[Param] = &[param("sampling_rate", "µs", Range::Int(1, 1000), Default::Int(10))];

fn catalogue() -> Catalogue {
    Catalogue {
        groups: vec![
            // An owner that is resolved only by a later group must still be found.
            Group { owner: Some(("sampler", "fine")), ..Group::of(FINE) },
            Group::of(GENERAL),
            Group { owner: Some(("governor", "schedutil")), ..Group::of(SCHEDUTIL) },
            Group { owner: Some(("governor", "ondemand")), ..Group::of(ONDEMAND) },
        ],
    }
}

fn resolve(arg: &str) -> Result<Settings, String> {
    let policy = Policy::from_arg(arg).map_err(|e| e.to_string())?;
    let platform = Platform::load("m1").map_err(|e| e.to_string())?;
    catalogue().resolve(&platform, &policy).map_err(|e| e.to_string())
}

fn listed(arg: &str) -> String {
    let settings = resolve(arg).unwrap_or_else(|e| panic!("{e}"));
    let all: Vec<String> = settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
    all.join(" ")
}

#[test]
fn everything_available_has_a_value_and_nothing_else() {
    assert_eq!(listed("linux-6.8"), "background_util=0 governor=schedutil rate_limit_us=10000");
    assert_eq!(
        listed("linux-6.8+rate_limit_us=70+first_cpu=3"),
        "background_util=0 first_cpu=3 governor=schedutil rate_limit_us=70"
    );
    assert_eq!(listed("linux-6.8+governor=performance"), "background_util=0 governor=performance");
    assert_eq!(
        listed("linux-6.8+governor=ondemand+sampler=fine+sampling_rate=3"),
        "background_util=0 governor=ondemand sampler=fine sampling_rate=3 up_threshold=95"
    );
}

#[test]
fn the_ends_of_a_range_belong_to_it() {
    assert!(listed("linux-6.8+background_util=1024").contains("background_util=1024"));
    assert!(listed("linux-6.8+rate_limit_us=0").contains("rate_limit_us=0"));
    assert!(resolve("linux-6.8+background_util=1025").is_err());
    assert!(resolve("linux-6.8+rate_limit_us=-1").is_err());
}

#[test]
fn a_number_or_a_name_may_be_either() {
    let room = |value: &str| resolve(&format!("linux-6.8+governor=ondemand+room={value}"));
    for (value, number) in [("0", 0), ("10%", 10), ("10 %", 10), ("400", 400)] {
        assert_eq!(room(value).expect(value).get(&ROOM), Some(&Value::Int(number)));
    }
    assert_eq!(room("none").expect("a name").get(&ROOM), Some(&Value::Name("none".into())));
}

#[test]
fn every_fault_has_one_clear_message() {
    let mut said = String::new();
    for arg in [
        "linux-6.8+rate_limt_us=70",
        "linux-6.8+colour=red",
        "linux-6.8+governor=performance+rate_limit_us=70",
        "linux-6.8+governor=ondemand+sampling_rate=3",
        "linux-6.8+up_threshold=50",
        "linux-6.8+rate_limit_us=1000001",
        "linux-6.8+rate_limit_us=70us",
        "linux-6.8+rate_limit_us=0.5",
        "linux-6.8+rate_limit_us=99999999999999999999",
        "linux-6.8+background_util=-1",
        "linux-6.8+governor=perfomance",
        "linux-6.8+governor=5",
        "linux-6.8+first_cpu=1024",
        "linux-6.8+governor=ondemand+room=401%",
        "linux-6.8+governor=ondemand+room=mainlin",
        "linux-6.8+background_util=10%",
    ] {
        said += &entry(arg, &resolve(arg).expect_err(arg));
    }
    check_transcript("bad_settings.txt", &said);
}

fn set(k: &str, n: i64) -> (String, Value) {
    (k.to_string(), Value::Int(n))
}

#[test]
fn a_setting_asked_for_twice_is_asked_for_alike() {
    let common = [set("rate_limit_us", 500), set("background_util", 9)];
    let of = |arg, common: &[(String, Value)]| {
        Policy::from_arg_with(arg, common).map(|p| p.name).map_err(|e| e.to_string())
    };
    assert_eq!(
        of("mainline+rate_limit_us=70", &common).unwrap_err(),
        "mainline+rate_limit_us=70: `--set rate_limit_us=500` and `+rate_limit_us=70` differ\n  hint: leave one of them out"
    );
    let twice = [set("first_cpu", 1), set("first_cpu", 2)];
    assert!(
        of("mainline", &twice).unwrap_err().starts_with("--set: `--set first_cpu=1` and `--set")
    );
    assert!(of("mainline+a=1+a=2", &[]).unwrap_err().contains("`+a=1` and `+a=2` differ"));
    assert_eq!(of("mainline+rate_limit_us=500", &common).unwrap(), "linux-7.2+rate_limit_us=500");
    // The preset's own value is what a setting is there to replace.
    assert_eq!(of("rfc-v1", &[set("rate_limit_us", 500)]).unwrap(), "rfc-v1");
}

#[test]
fn a_bad_setting_in_a_file_is_named_by_its_place() {
    let dir = std::env::temp_dir().join(format!("risetime-policy-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("mine.toml").display().to_string();
    let error = |line: &str, more: &str| {
        let head = "schema = 1\nname = \"linux-6.8\"\nkernel = \"6.8\"\n[set]\n";
        std::fs::write(&file, format!("{head}{line}\n")).expect("a file");
        resolve(&format!("{file}{more}")).expect_err(line).replace(&file, "mine.toml")
    };
    for (line, words) in [
        ("colour = 3", "mine.toml:5:1: unknown setting `colour`"),
        ("first_cpu = 1024", "mine.toml:5:1: `first_cpu` is 1024"),
        ("up_threshold = 5", "mine.toml:5:1: `up_threshold` is a setting of the governor"),
    ] {
        let e = error(line, "");
        assert!(e.starts_with(words), "{line}: {e}");
    }
    // What the command line replaces is no longer the file's.
    let e = error("first_cpu = 3", "+first_cpu=1025");
    assert!(e.starts_with("linux-6.8+first_cpu=1025: `first_cpu` is 1025"), "{e}");
    std::fs::remove_dir_all(dir).expect("it is there");
}

#[test]
fn later_settings_replace_earlier_ones_and_the_name_says_what_is_special() {
    let p = Policy::from_arg_with("mainline+rate_limit_us=70", &[set("background_util", 9)])
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(p.name, "linux-7.2+rate_limit_us=70");
    assert_eq!(p.set["rate_limit_us"], Value::Int(70));
    assert_eq!(p.set["background_util"], Value::Int(9));
    assert_eq!(p.set["governor"], Value::Name("schedutil".into()));

    let p = p.with("a", Value::Int(1)).with("rate_limit_us", Value::Int(80));
    assert_eq!(p.name, "linux-7.2+a=1+rate_limit_us=80", "a setting is named once");
    assert_eq!(p.set["rate_limit_us"], Value::Int(80));
}

#[test]
fn a_home_that_is_a_file_says_which() {
    let file = |home: Home| home.file(CpuId(4));
    let is = |home: Home, path: &str| assert_eq!(file(home).as_deref(), Some(path), "{home}");
    is(Home::Sysctl("kernel.sched_energy_aware"), "/proc/sys/kernel/sched_energy_aware");
    is(Home::Debugfs("sched/base_slice_ns"), "/sys/kernel/debug/sched/base_slice_ns");
    is(Home::DebugfsCpu("a/cpuN/b"), "/sys/kernel/debug/a/cpu4/b");
    is(Home::Feature("NI_RANDOM"), "/sys/kernel/debug/sched/features");
    is(
        Home::CpuSysfs("cpuidle/current_governor"),
        "/sys/devices/system/cpu/cpuidle/current_governor",
    );
    is(
        Home::Tunable("schedutil/rate_limit_us"),
        "/sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us",
    );
    is(
        Home::Policy("scaling_max_freq"),
        "/sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq",
    );
    for home in [
        Home::SchedAttr("sched_util_min"),
        Home::Affinity,
        Home::Prctl("PR_SET_TIMERSLACK"),
        Home::Boot("preempt="),
        Home::Patched(Some("kernel.sched_pelt_multiplier"), Neutral::Int(1)),
        Home::Simulator(Neutral::None),
    ] {
        assert_eq!(file(home), None, "{home}");
    }
}

#[test]
fn a_neutral_value_is_that_one_and_no_other() {
    let (zero, fair) = (Neutral::Int(0), Neutral::Name("fair"));
    let (int, name) = (|n| Value::Int(n), |s: &str| Value::Name(s.into()));
    assert!(zero.is(&int(0)) && fair.is(&name("fair")));
    let both = Neutral::Both(25, "mainline");
    assert!(both.is(&int(25)) && both.is(&name("mainline")));
    assert!(!both.is(&int(26)) && !both.is(&name("25")));
    assert!(!zero.is(&int(1)) && !zero.is(&name("0")) && !fair.is(&name("prev")));
    assert!(
        !Neutral::None.is(&int(0)) && Neutral::Any.is(&int(0)) && Neutral::Any.is(&name("fair"))
    );
}

#[test]
fn a_setting_may_go_by_the_frequency() {
    let of = |value: &str| {
        resolve(&format!("linux-6.8+governor=ondemand+targets={value}"))
            .map(|s| s.get(&TARGETS).unwrap_or_default())
    };
    assert_eq!(of("85"), Ok(vec![(0, 85)]));
    assert_eq!(of("85%"), Ok(vec![(0, 85)]));
    assert_eq!(of("85 1000000:90 1700000:99"), Ok(vec![(0, 85), (1_000_000, 90), (1_700_000, 99)]));
    assert_eq!(resolve("linux-6.8").map(|s| s.get(&TARGETS)), Ok(None));
    for bad in ["0", "101", "85 1000000", "85 1000000:101", "85 2000:90 1000:95", "85 a:b", ":"] {
        let e = of(bad).unwrap_err();
        let wanted = "wanted a whole number from 1 to 100 %, or such numbers with the frequencies between them";
        assert!(e.contains(wanted), "{bad}: {e}");
    }
}
