//! Files that are built into the binary, so that names work from any directory.

/// A built-in file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the entry: what `--platform`, `--policy` or the workload argument says.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
    /// True if the file is JSON, false if it is TOML.
    is_json: bool,
    /// Other names for it.
    pub aliases: &'static [&'static str],
}

impl Entry {
    /// Returns one line for a reader, from the file itself.
    pub fn about(&self) -> String {
        if self.is_json { crate::workload::about_in(self.text) } else { about_in(self.text) }
    }
}

/// The policy that is taken when nobody names one.
pub const DEFAULT_POLICY: &str = "mainline";

/// The built-in machines, by name.
pub fn platforms() -> Vec<Entry> {
    toml_entries(&[
        ("chromebook2", include_str!("../../../platforms/chromebook2.toml"), &[]),
        ("chromebook4", include_str!("../../../platforms/chromebook4.toml"), &[]),
        ("exynos5800", include_str!("../../../platforms/exynos5800.toml"), &[]),
        ("hikey620", include_str!("../../../platforms/hikey620.toml"), &[]),
        ("hikey620-uncooled", include_str!("../../../platforms/hikey620-uncooled.toml"), &[]),
        ("hikey960", include_str!("../../../platforms/hikey960.toml"), &[]),
        ("intel-hybrid", include_str!("../../../platforms/intel-hybrid.toml"), &[]),
        ("juno", include_str!("../../../platforms/juno.toml"), &[]),
        ("laptop4", include_str!("../../../platforms/laptop4.toml"), &[]),
        ("lunar-lake", include_str!("../../../platforms/lunar-lake.toml"), &[]),
        ("m1", include_str!("../../../platforms/m1.toml"), &[]),
        ("mobile200", include_str!("../../../platforms/mobile200.toml"), &[]),
        ("mt8195", include_str!("../../../platforms/mt8195.toml"), &[]),
        ("odroid-xu4", include_str!("../../../platforms/odroid-xu4.toml"), &[]),
        ("pixel6", include_str!("../../../platforms/pixel6.toml"), &[]),
        ("pixel8", include_str!("../../../platforms/pixel8.toml"), &[]),
        ("pixel9", include_str!("../../../platforms/pixel9.toml"), &[]),
        ("power-2061", include_str!("../../../platforms/power-2061.toml"), &[]),
        ("rk3588", include_str!("../../../platforms/rk3588.toml"), &[]),
        ("rpi4", include_str!("../../../platforms/rpi4.toml"), &[]),
        ("ryzen-8840u", include_str!("../../../platforms/ryzen-8840u.toml"), &[]),
        ("sc8280xp", include_str!("../../../platforms/sc8280xp.toml"), &[]),
        ("server256", include_str!("../../../platforms/server256.toml"), &[]),
        ("server64", include_str!("../../../platforms/server64.toml"), &[]),
        ("sm8550", include_str!("../../../platforms/sm8550.toml"), &[]),
        ("steam-deck", include_str!("../../../platforms/steam-deck.toml"), &[]),
        ("xavier-agx", include_str!("../../../platforms/xavier-agx.toml"), &[]),
        ("zcu102", include_str!("../../../platforms/zcu102.toml"), &[]),
    ])
}

/// The built-in policies: mainline from the oldest kernel to the newest, then patch series.
pub fn policies() -> Vec<Entry> {
    toml_entries(&[
        ("linux-3.15", include_str!("../../../policies/linux-3.15.toml"), &[]),
        ("linux-4.4", include_str!("../../../policies/linux-4.4.toml"), &[]),
        ("linux-4.4-newpelt", include_str!("../../../policies/linux-4.4-newpelt.toml"), &[]),
        ("linux-4.4-walt", include_str!("../../../policies/linux-4.4-walt.toml"), &[]),
        (
            "linux-4.5-schedutil-rfc",
            include_str!("../../../policies/linux-4.5-schedutil-rfc.toml"),
            &[],
        ),
        ("linux-4.7", include_str!("../../../policies/linux-4.7.toml"), &[]),
        ("linux-4.14", include_str!("../../../policies/linux-4.14.toml"), &[]),
        ("muqss-4.14", include_str!("../../../policies/muqss-4.14.toml"), &[]),
        ("linux-4.20", include_str!("../../../policies/linux-4.20.toml"), &[]),
        ("linux-5.10", include_str!("../../../policies/linux-5.10.toml"), &[]),
        ("linux-6.1", include_str!("../../../policies/linux-6.1.toml"), &[]),
        ("linux-6.5", include_str!("../../../policies/linux-6.5.toml"), &[]),
        ("linux-6.6", include_str!("../../../policies/linux-6.6.toml"), &[]),
        ("linux-6.8", include_str!("../../../policies/linux-6.8.toml"), &[]),
        ("linux-6.11", include_str!("../../../policies/linux-6.11.toml"), &[]),
        ("linux-6.12", include_str!("../../../policies/linux-6.12.toml"), &[]),
        ("linux-6.18", include_str!("../../../policies/linux-6.18.toml"), &[]),
        ("linux-7.0", include_str!("../../../policies/linux-7.0.toml"), &[]),
        ("linux-7.2", include_str!("../../../policies/linux-7.2.toml"), &["mainline"]),
        ("linux-7.3", include_str!("../../../policies/linux-7.3.toml"), &[]),
        ("rfc-v1", include_str!("../../../policies/rfc-v1.toml"), &[]),
        ("rfc-v1-x0", include_str!("../../../policies/rfc-v1-x0.toml"), &[]),
        ("rfc-v1-x2", include_str!("../../../policies/rfc-v1-x2.toml"), &[]),
        ("rfc-v1-x3", include_str!("../../../policies/rfc-v1-x3.toml"), &[]),
        ("rfc-v1-x4", include_str!("../../../policies/rfc-v1-x4.toml"), &[]),
        ("rfc-v1-p04", include_str!("../../../policies/rfc-v1-p04.toml"), &[]),
        ("rfc-v1-p05", include_str!("../../../policies/rfc-v1-p05.toml"), &[]),
        ("rfc-v1-p06", include_str!("../../../policies/rfc-v1-p06.toml"), &[]),
        ("rfc-v1-p07", include_str!("../../../policies/rfc-v1-p07.toml"), &[]),
        ("rfc-v1-p08", include_str!("../../../policies/rfc-v1-p08.toml"), &[]),
        ("rfc-v1-p09", include_str!("../../../policies/rfc-v1-p09.toml"), &[]),
        ("rfc-v1-p10", include_str!("../../../policies/rfc-v1-p10.toml"), &[]),
        ("rfc-v1-p11", include_str!("../../../policies/rfc-v1-p11.toml"), &[]),
        ("rfc-v1-p12", include_str!("../../../policies/rfc-v1-p12.toml"), &[]),
        ("rfc-v1-p13", include_str!("../../../policies/rfc-v1-p13.toml"), &[]),
        ("rfc-v1-p14", include_str!("../../../policies/rfc-v1-p14.toml"), &[]),
        ("rfc-v1-p15", include_str!("../../../policies/rfc-v1-p15.toml"), &[]),
        ("rfc-v1-p16", include_str!("../../../policies/rfc-v1-p16.toml"), &[]),
        ("rfc-v2", include_str!("../../../policies/rfc-v2.toml"), &[]),
        ("pixel-5.10", include_str!("../../../policies/pixel-5.10.toml"), &[]),
        ("pixel-6.1", include_str!("../../../policies/pixel-6.1.toml"), &[]),
        ("pixel-6.1-fixed", include_str!("../../../policies/pixel-6.1-fixed.toml"), &[]),
        ("pixel6-init", include_str!("../../../policies/pixel6-init.toml"), &[]),
        ("pixel8-init", include_str!("../../../policies/pixel8-init.toml"), &[]),
        ("pixel9-init", include_str!("../../../policies/pixel9-init.toml"), &[]),
    ])
}

/// The built-in workloads, by name.
pub fn workloads() -> Vec<Entry> {
    const ALL: [(&str, &str); 38] = [
        ("audio", include_str!("../../../workloads/audio.json")),
        ("compile", include_str!("../../../workloads/compile.json")),
        ("idle", include_str!("../../../workloads/idle.json")),
        ("periodic", include_str!("../../../workloads/periodic.json")),
        ("periodic-2in10", include_str!("../../../workloads/periodic-2in10.json")),
        ("periodic-visited", include_str!("../../../workloads/periodic-visited.json")),
        ("periodic-crowd", include_str!("../../../workloads/periodic-crowd.json")),
        ("phone", include_str!("../../../workloads/phone.json")),
        ("rampup", include_str!("../../../workloads/rampup.json")),
        ("rampup-beside", include_str!("../../../workloads/rampup-beside.json")),
        ("rampup-visited", include_str!("../../../workloads/rampup-visited.json")),
        ("server", include_str!("../../../workloads/server.json")),
        ("spinners", include_str!("../../../workloads/spinners.json")),
        ("sleeping-ebizzy", include_str!("../../../workloads/sleeping-ebizzy.json")),
        ("left-behind", include_str!("../../../workloads/left-behind.json")),
        ("moved", include_str!("../../../workloads/moved.json")),
        ("rt-beside", include_str!("../../../workloads/rt-beside.json")),
        ("rt-crowd", include_str!("../../../workloads/rt-crowd.json")),
        ("ui-hwuitest", include_str!("../../../workloads/ui-hwuitest.json")),
        ("ui-jank-bench", include_str!("../../../workloads/ui-jank-bench.json")),
        ("ui-recentfling", include_str!("../../../workloads/ui-recentfling.json")),
        ("vellamo-forkjoin", include_str!("../../../workloads/vellamo-forkjoin.json")),
        ("vellamo-parsec", include_str!("../../../workloads/vellamo-parsec.json")),
        ("vellamo-pipes", include_str!("../../../workloads/vellamo-pipes.json")),
        ("vellamo-stream", include_str!("../../../workloads/vellamo-stream.json")),
        ("vellamo-sysbench", include_str!("../../../workloads/vellamo-sysbench.json")),
        ("vellamo-threadbench", include_str!("../../../workloads/vellamo-threadbench.json")),
        ("dilution", include_str!("../../../workloads/dilution.json")),
        ("video-call-16", include_str!("../../../workloads/video-call-16.json")),
        ("video-call-49", include_str!("../../../workloads/video-call-49.json")),
        ("rt-burst", include_str!("../../../workloads/rt-burst.json")),
        ("alarm-applet", include_str!("../../../workloads/alarm-applet.json")),
        ("overcommit", include_str!("../../../workloads/overcommit.json")),
        ("video-playback", include_str!("../../../workloads/video-playback.json")),
        ("video-playback-aligned", include_str!("../../../workloads/video-playback-aligned.json")),
        ("short-timeout", include_str!("../../../workloads/short-timeout.json")),
        ("game", include_str!("../../../workloads/game.json")),
        ("hinted", include_str!("../../../workloads/hinted.json")),
    ];
    ALL.iter().map(|&(name, text)| Entry { name, text, is_json: true, aliases: &[] }).collect()
}

/// The built-in studies, by name.
pub fn studies() -> Vec<Entry> {
    toml_entries(&[
        ("bud-2017", include_str!("../../../studies/bud-2017.toml"), &[]),
        ("coherent-response", include_str!("../../../studies/coherent-response.toml"), &[]),
        ("load-tracking-2017", include_str!("../../../studies/load-tracking-2017.toml"), &[]),
        ("muckle-2016", include_str!("../../../studies/muckle-2016.toml"), &[]),
        ("ondemand-2014", include_str!("../../../studies/ondemand-2014.toml"), &[]),
        ("ospm-2023", include_str!("../../../studies/ospm-2023.toml"), &[]),
        ("rfc-2024", include_str!("../../../studies/rfc-2024.toml"), &[]),
        ("steady-tasks", include_str!("../../../studies/steady-tasks.toml"), &[]),
    ])
}

type Raw = (&'static str, &'static str, &'static [&'static str]);

fn toml_entries(all: &[Raw]) -> Vec<Entry> {
    all.iter().map(|&(name, text, aliases)| Entry { name, text, is_json: false, aliases }).collect()
}

/// The line `about = "…"` of a built-in TOML file (a test holds it to the parser's answer).
fn about_in(text: &str) -> String {
    let line = text.lines().find_map(|l| l.strip_prefix("about = \"")).unwrap_or("");
    line.trim_end().trim_end_matches('"').to_string()
}
