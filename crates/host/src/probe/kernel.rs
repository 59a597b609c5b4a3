//! The kernel itself: its build, its tick, whether it is a guest, and who limits it.

use crate::root::{Fact, Root};
use std::collections::BTreeMap;
use std::io::Read;

/// The build configuration of the running kernel, from the places where distributions keep it.
pub(super) fn config(root: &Root, release: Option<&str>) -> Option<Fact<BTreeMap<String, String>>> {
    if let Some(text) = root.bytes("/proc/config.gz").and_then(|gz| gunzip(&gz)) {
        return Some(Fact { value: parse_config(&text), file: "/proc/config.gz".to_owned() });
    }
    let release = release.filter(|r| !r.contains('/'))?;
    let places = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
        format!("/usr/lib/modules/{release}/config"),
        format!("/usr/lib/kernel/config-{release}"),
        format!("/lib/modules/{release}/build/.config"),
        format!("/usr/src/linux-headers-{release}/.config"),
    ];
    let text = places.iter().find_map(|file| root.read(file))?;
    let options = parse_config(&text.value);
    if options.is_empty() {
        root.garbage(&text, "a kernel configuration");
        return None;
    }
    Some(Fact { value: options, file: text.file })
}

/// Unpacks at most 4 MiB of `gz`; `None` if it is no gzip file.
fn gunzip(gz: &[u8]) -> Option<String> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(gz).take(4 << 20).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse_config(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}

/// Ticks per second. On the running machine from the resolution of the coarse clock, which is
/// the length of a tick (kernel/time/posix-timers.c:posix_get_coarse_res); in a saved tree
/// from the build configuration.
pub(super) fn hz(
    root: &Root,
    config: Option<&Fact<BTreeMap<String, String>>>,
) -> Option<Fact<u32>> {
    if root.is_live()
        && let Some(hz) = hz_of_coarse_clock()
    {
        return Some(Fact { value: hz, file: "clock_getres(CLOCK_MONOTONIC_COARSE)".to_owned() });
    }
    let config = config?;
    let hz = config.value.get("HZ")?.parse().ok().filter(|hz| (24..=10_000).contains(hz))?;
    Some(Fact { value: hz, file: config.file.clone() })
}

fn hz_of_coarse_clock() -> Option<u32> {
    let t = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    let ns = u64::try_from(t.tv_sec).ok()?.checked_mul(1_000_000_000)?
        + u64::try_from(t.tv_nsec).ok()?;
    let hz = u32::try_from((1_000_000_000 + ns / 2).checked_div(ns)?).ok()?;
    // A resolution of 1 ns means that somebody answers who is not Linux.
    (24..=10_000).contains(&hz).then_some(hz)
}

/// The name under which the machine is sold.
pub(super) fn product(root: &Root) -> Option<Fact> {
    let clean = |f: Fact| {
        let value = f.value.trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned();
        let empty = value.is_empty()
            || value.contains("To be filled")
            || value.contains("System Product Name");
        (!empty).then_some(Fact { value, file: f.file })
    };
    root.read("/proc/device-tree/model")
        .or_else(|| root.read("/sys/firmware/devicetree/base/model"))
        .and_then(clean)
        .or_else(|| root.read("/sys/devices/virtual/dmi/id/product_name").and_then(clean))
}

/// The fact that tells that a hypervisor runs this machine.
pub(super) fn virtual_machine(root: &Root, flags: &[String]) -> Option<Fact> {
    if flags.iter().any(|f| f == "hypervisor") {
        return Some(Fact {
            value: "flag hypervisor".to_owned(),
            file: "/proc/cpuinfo".to_owned(),
        });
    }
    // Xen sets the file in its first domain too, where cpufreq may be Xen's.
    if let Some(f) = root.read("/sys/hypervisor/type").filter(|f| !f.value.is_empty()) {
        return Some(f);
    }
    if root.exists("/proc/device-tree/hypervisor/compatible") {
        return root.read("/proc/device-tree/hypervisor/compatible");
    }
    const VENDORS: [&str; 8] = [
        "QEMU",
        "KVM",
        "VMware",
        "VirtualBox",
        "Xen",
        "Amazon EC2",
        "Google Compute",
        "Virtual Machine",
    ];
    ["sys_vendor", "product_name", "board_vendor"]
        .iter()
        .filter_map(|f| root.read(&format!("/sys/devices/virtual/dmi/id/{f}")))
        .find(|f| VENDORS.iter().any(|v| f.value.contains(v)))
}

/// The CPUs after which schedutil's kthreads are named: a policy that cannot switch in the
/// governor's context has one (kernel/sched/cpufreq_schedutil.c:sugov_kthread_create). `None`
/// if kernel threads are not to be seen (another PID namespace, hidepid).
pub(super) fn sugov_threads(root: &Root) -> Option<Vec<u32>> {
    if root.read("/proc/2/comm")?.value != "kthreadd" {
        return None;
    }
    let pids = root.list("/proc").into_iter().filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let comm = |pid: String| root.read(&format!("/proc/{pid}/comm"));
    Some(pids.filter_map(|pid| comm(pid)?.value.strip_prefix("sugov:")?.parse().ok()).collect())
}

/// Lists control groups with a `cpu.uclamp.min` above 0 or a `cpu.uclamp.max` below the maximum: at
/// most four levels deep, at most 2000 groups.
pub(super) fn cgroup_clamps(root: &Root) -> Vec<Fact> {
    let mut found = Vec::new();
    let mut groups: Vec<(String, u32)> =
        ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"]
            .into_iter()
            .filter(|d| root.exists(d))
            .map(|d| (d.to_owned(), 0))
            .collect();
    let mut next = 0;
    while next < groups.len().min(2000) {
        let (dir, depth) = groups[next].clone();
        next += 1;
        for (file, neutral) in
            [("cpu.uclamp.min", ["0.00", "0"]), ("cpu.uclamp.max", ["max", "100.00"])]
        {
            if let Some(f) = root.read(&format!("{dir}/{file}"))
                && !neutral.contains(&f.value.as_str())
            {
                found.push(f);
            }
        }
        if depth < 4 {
            // A group is told by the file that every group has.
            let dirs = root.list(&dir).into_iter().map(|n| format!("{dir}/{n}"));
            groups.extend(
                dirs.filter(|d| root.exists(&format!("{d}/cgroup.procs"))).map(|d| (d, depth + 1)),
            );
        }
    }
    found.sort_by(|a, b| a.file.cmp(&b.file));
    found.dedup();
    found
}

/// Lists cooling devices of CPUs that are in use now.
pub(super) fn cooling(root: &Root) -> Vec<Fact> {
    let parent = "/sys/class/thermal";
    let devices = root.list(parent).into_iter().filter(|n| n.starts_with("cooling_device"));
    devices
        .filter_map(|n| {
            let kind = root.read(&format!("{parent}/{n}/type"))?.value;
            let now = root.number(&format!("{parent}/{n}/cur_state"))?;
            let max = root.number(&format!("{parent}/{n}/max_state"))?;
            let of_cpus = kind.contains("cpu") || kind == "Processor";
            (of_cpus && now.value > 0 && max.value > 0).then(|| Fact {
                value: format!("{} of {} ({kind})", now.value, max.value),
                file: now.file,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_lines() {
        let c = parse_config(
            "# CONFIG_UCLAMP_TASK is not set\nCONFIG_HZ=250\nCONFIG_X=\"a=b\"\ngarbage\n",
        );
        assert_eq!(c.get("HZ").map(String::as_str), Some("250"));
        assert_eq!(c.get("X").map(String::as_str), Some("a=b"));
        assert!(!c.contains_key("UCLAMP_TASK"));
    }

    #[test]
    fn not_gzip_is_no_configuration() {
        assert_eq!(gunzip(b"CONFIG_HZ=250"), None);
        assert_eq!(gunzip(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3]), None);
    }

    /// The two independent ways to know HZ agree wherever both are to be had.
    #[test]
    fn coarse_clock_agrees_with_the_configuration() {
        let root = Root::new("/");
        let by_clock = hz_of_coarse_clock().expect("Linux has a coarse clock");
        let release = root.read("/proc/sys/kernel/osrelease").map(|f| f.value);
        if let Some(config) = config(&root, release.as_deref()) {
            assert_eq!(config.value.get("HZ"), Some(&by_clock.to_string()), "{}", config.file);
        }
    }
}
