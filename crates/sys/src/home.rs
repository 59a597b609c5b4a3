//! A setting by its home: the changes by which this machine has it.
//!
//! ```text
//! Sysctl, Debugfs, CpuSysfs       one file
//! DebugfsCpu, Cpu, Policy         the file of each CPU or policy that there is
//! Tunable                         one file for all policies, or one of each, as the driver has it
//! Feature                         NAME or NO_NAME
//! Device                          held open: [`hold`]
//! ```

use crate::journal::{Change, Fault, Root};
use risetime_model::settings::{Home, Value};
use std::fs::{self, File, OpenOptions};
use std::io::Write;

/// The changes that give the setting `name` at `home` its `value` on the machine below `root`; at least one.
///
/// Errors: no file on this machine; a home that is no file, with the way that it is set there.
pub fn changes(root: &Root, name: &str, home: Home, value: &Value) -> Result<Vec<Change>, Fault> {
    let fault = |what: String| Fault { place: name.into(), what, hint: String::new() };
    if let Home::Feature(feature) = home {
        return Ok(vec![Change::feature(feature, *value != Value::Int(0))]);
    }
    let patterns = home.everywhere();
    if patterns.is_empty() {
        return Err(fault(format!("is no file of a machine ({home})")));
    }
    let files: Vec<String> = patterns.iter().flat_map(|p| expanded(root, p)).collect();
    match files.is_empty() {
        false => Ok(files.into_iter().map(|file| Change::file(file, value)).collect()),
        true => {
            let missing = std::io::ErrorKind::NotFound.into();
            Err(Fault::of(&patterns.join(", "), "", &missing))
        }
    }
}

/// Asks for something by holding `/dev/NAME` open, as long as what is returned lives; nobody has to take that back.
///
/// Errors: the system's, in words.
pub fn hold(root: &Root, device: &str, value: i32) -> Result<File, Fault> {
    let path = format!("/dev/{device}");
    let open = OpenOptions::new().write(true).open(root.path(&path));
    let held = open.and_then(|mut file| {
        file.write_all(&value.to_ne_bytes())?;
        Ok(file)
    });
    held.map_err(|e| Fault::of(&path, "", &e))
}

/// The files that there are of a pattern, in which `cpu*` and `policy*` are directories with a number, by that number.
fn expanded(root: &Root, pattern: &str) -> Vec<String> {
    let Some((before, after)) = pattern.split_once('*') else {
        return Some(pattern.to_string()).filter(|p| root.path(p).exists()).into_iter().collect();
    };
    let (dir, stem) = before.rsplit_once('/').unwrap_or(("", before));
    let entries = fs::read_dir(root.path(dir)).into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| -> Option<u32> {
        entry.file_name().to_str()?.strip_prefix(stem)?.parse().ok()
    };
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers.into_iter().flat_map(|n| expanded(root, &format!("{before}{n}{after}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_every_file_that_there_is_of_it() {
        let dir = std::env::temp_dir().join(format!("risetime-home-{}", std::process::id()));
        let cpu = dir.join("sys/devices/system/cpu");
        for policy in ["cpufreq/policy0", "cpufreq/policy10/schedutil", "cpufreq/policy4/schedutil"]
        {
            fs::create_dir_all(cpu.join(policy)).unwrap();
        }
        for file in ["policy10/schedutil/rate_limit_us", "policy4/schedutil/rate_limit_us"] {
            fs::write(cpu.join("cpufreq").join(file), "0").unwrap();
        }
        let root = Root::below(&dir);
        let of = |home: Home| changes(&root, "x", home, &Value::Int(5)).map_err(|e| e.to_string());
        let file = |n: u32| {
            let path = format!("/sys/devices/system/cpu/cpufreq/policy{n}/schedutil/rate_limit_us");
            Change::file(path, 5)
        };
        assert_eq!(of(Home::Tunable("schedutil/rate_limit_us")), Ok(vec![file(4), file(10)]));
        assert_eq!(of(Home::Feature("UTIL_EST")), Ok(vec![Change::feature("UTIL_EST", true)]));
        let none = of(Home::Sysctl("kernel.sched_energy_aware")).unwrap_err();
        assert_eq!(
            none,
            "/proc/sys/kernel/sched_energy_aware: this kernel does not have it \
             (Linux with CONFIG_ENERGY_MODEL, where capacities differ)"
        );
        assert_eq!(
            of(Home::Boot("preempt=")).unwrap_err(),
            "x: is no file of a machine (boot parameter: preempt=)"
        );
        fs::remove_dir_all(dir).unwrap();
    }
}
