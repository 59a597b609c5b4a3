//! The virtual machine made ready: file systems, modules, settings; and everything read back.

use crate::answer::value_line;
use crate::sys;
use crate::work::policy_dir;
use risetime_job::job::Job;
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::io;
use std::path::Path;

/// Time in which the cpufreq policies have to appear, in ns.
const POLICIES_WITHIN: u64 = 10_000_000_000;
/// A file of sysfs that is longer is cut.
const MAX_FILE: usize = 1 << 16;
/// Directories are read so deep.
const MAX_DEPTH: u32 = 6;

/// Mounts what an init needs. One that this kernel has not is left out: whoever needs it fails
/// with the path in its message.
pub(crate) fn mount_all() -> Result<(), String> {
    for (kind, dir) in [
        ("devtmpfs", "/dev"),
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("debugfs", "/sys/kernel/debug"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        // sysfs has its mount points; for the others the initramfs may have none.
        let _ = fs::create_dir_all(dir);
        let done = mount(kind, dir, kind, MountFlags::empty(), None);
        if let (Err(e), "proc" | "sysfs") = (done, kind) {
            return Err(format!("mount {dir}: {e}"));
        }
    }
    Ok(())
}

/// Loads the modules in order; a failure is recorded in `values` and returned.
pub(crate) fn load_modules(job: &Job, values: &mut String) -> Result<(), String> {
    const COMPRESSED: std::ffi::c_int = 4;
    for path in &job.modules {
        let flags = if path.ends_with(".ko") { 0 } else { COMPRESSED };
        let done = fs::File::open(path)
            .and_then(|file| Ok(rustix::system::finit_module(&file, c"", flags)?));
        match done {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                values.push_str(&value_line(&format!("module {path}"), &e.to_string()));
                return Err(format!("module {path}: {e}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Waits until each CPU's cpufreq policy is there, if a driver was loaded for it.
pub(crate) fn wait_for_policies(job: &Job) -> Result<(), String> {
    let until = sys::mono() + POLICIES_WITHIN;
    for cpu in job.cpus.iter().filter(|c| c.freq_max_khz > 0) {
        let dir = policy_dir(cpu.policy);
        while !Path::new(&dir).exists() {
            if sys::mono() > until {
                return Err(format!("{dir}: there is no such cpufreq policy"));
            }
            sys::sleep_until(sys::mono() + 10_000_000);
        }
    }
    Ok(())
}

/// Writes the settings in order; what fails is recorded as `failed PATH`.
///
/// The kernel learns how fast a CPU is from a change of its frequency (`arch_set_freq_scale`, called at the
/// end of one); until the first it is taken to be at its highest. A policy that stands at its lowest since it was
/// registered, and may stay there, is therefore raised once: signals and deadlines' runtime on its CPUs would
/// else go on as at full speed.
pub(crate) fn apply(job: &Job, values: &mut String) {
    for (path, value) in &job.set {
        if path.ends_with("/scaling_governor") {
            // A kernel without it has told its CPUs' speed, or never will.
            let _ = write(path, "performance");
        }
        if let Err(e) = write(path, value) {
            values.push_str(&value_line(&format!("failed {path}"), &e.to_string()));
        }
    }
}

/// Writes by one system call and creates nothing: a setting that is not there is an error.
fn write(path: &str, value: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Reads every path that was set or is to be read, and what the kernel is.
pub(crate) fn read_back(job: &Job, values: &mut String) {
    let uname = rustix::system::uname();
    let (release, version) = (uname.release().to_string_lossy(), uname.version().to_string_lossy());
    let tick = sys::tick();
    let hz = (1_000_000_000 + tick / 2) / tick;
    for (key, value) in [
        ("release", &*release),
        ("version", &*version),
        ("tick_ns", &tick.to_string()),
        ("hz", &hz.to_string()),
    ] {
        values.push_str(&value_line(key, value));
    }
    for path in job.set.iter().map(|(path, _)| path).chain(&job.read) {
        read_path(Path::new(path), MAX_DEPTH, values);
    }
}

/// A file, or all files below a directory in the order of their names (no links followed below
/// it).
fn read_path(path: &Path, depth: u32, values: &mut String) {
    let shown = path.to_string_lossy();
    if path.is_dir() {
        let mut entries: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.path()).collect();
        entries.sort();
        for entry in entries.iter().filter(|e| depth > 0 && !e.is_symlink()) {
            read_path(entry, depth - 1, values);
        }
        if entries.is_empty() {
            values.push_str(&value_line(&shown, "! nothing in this directory"));
        }
        return;
    }
    let text = match fs::read(path) {
        Ok(bytes) => {
            String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_FILE)]).trim_end().to_string()
        }
        Err(e) => format!("! {e}"),
    };
    values.push_str(&value_line(&shown, &text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_whole_and_in_order() {
        let dir = std::env::temp_dir().join(format!("risetime-read-{}", std::process::id()));
        fs::create_dir_all(dir.join("b")).unwrap();
        fs::write(dir.join("c"), "3\n").unwrap();
        fs::write(dir.join("b/a"), "1 2\n\n").unwrap();
        let mut values = String::new();
        read_path(&dir, 3, &mut values);
        let shown = dir.to_string_lossy();
        assert_eq!(values, format!("{shown}/b/a 1%202\n{shown}/c 3\n"));
        let mut values = String::new();
        read_path(&dir.join("nothing"), 3, &mut values);
        assert!(values.contains("!%20No%20such%20file"), "{values}");
        fs::remove_dir_all(dir).unwrap();
    }
}
