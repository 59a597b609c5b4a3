//! What is built into the binary, so that names work from any directory.

/// A built-in file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name: what `--platform`, `--policy` or the workload argument says.
    pub name: &'static str,
    /// One line for a reader, from the file itself.
    pub about: String,
    /// The file.
    pub text: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
}

/// The policy that is taken when nobody names one.
pub const DEFAULT_POLICY: &str = "mainline";

/// The built-in machines, by name.
pub fn platforms() -> Vec<Entry> {
    toml_entries(&[
        ("laptop4", include_str!("../../../platforms/laptop4.toml"), &[]),
        ("m1", include_str!("../../../platforms/m1.toml"), &[]),
    ])
}

/// The built-in policies, from the oldest kernel to the newest.
pub fn policies() -> Vec<Entry> {
    toml_entries(&[
        ("linux-6.8", include_str!("../../../policies/linux-6.8.toml"), &[]),
        ("linux-6.12", include_str!("../../../policies/linux-6.12.toml"), &[]),
        ("linux-7.2", include_str!("../../../policies/linux-7.2.toml"), &["mainline"]),
        ("linux-7.3", include_str!("../../../policies/linux-7.3.toml"), &[]),
    ])
}

/// The built-in workloads, by name.
pub fn workloads() -> Vec<Entry> {
    const ALL: [(&str, &str); 4] = [
        ("idle", include_str!("../../../workloads/idle.json")),
        ("periodic", include_str!("../../../workloads/periodic.json")),
        ("rampup", include_str!("../../../workloads/rampup.json")),
        ("spinners", include_str!("../../../workloads/spinners.json")),
    ];
    ALL.iter()
        .map(|&(name, text)| Entry {
            name,
            about: crate::workload::about_in(text),
            text,
            aliases: &[],
        })
        .collect()
}

type Raw = (&'static str, &'static str, &'static [&'static str]);

fn toml_entries(all: &[Raw]) -> Vec<Entry> {
    all.iter()
        .map(|&(name, text, aliases)| Entry { name, about: about_in(text), text, aliases })
        .collect()
}

/// The line `about = "…"` of a built-in TOML file (a test holds it to the parser's answer).
fn about_in(text: &str) -> String {
    let line = text.lines().find_map(|l| l.strip_prefix("about = \"")).unwrap_or("");
    line.trim_end().trim_end_matches('"').to_string()
}
