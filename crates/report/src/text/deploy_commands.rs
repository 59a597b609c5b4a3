//! The commands that put a plan's tasks where they belong, and how a shell finds the right thread.
//!
//! ```text
//! the kernel keeps 15 bytes of a thread's name: /proc/PID/task/TID/comm        compared as a whole, no pattern
//! tid NAME     the one thread that is called so; of none or several nothing, and a message
//! T3           a thread whose name tells it from no other one of the plan: whoever pastes the commands sets it
//! dl           chrt -d, again and again for 10 s: a thread that sleeps stays in its root domain until it wakes up
//! ```

use crate::page::{Ink, Page};
use risetime_deploy::plan::{Attr, Plan};
use risetime_deploy::server::Group;
use risetime_kernel::units::CpuId;

/// `TASK_COMM_LEN` without its end.
const COMM: usize = 15;

/// Way in which a shell comes to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    /// The thread is found by what the kernel keeps of its name.
    Name(String),
    /// The task cannot be found by its name, for this reason.
    Unknown(&'static str),
}

/// The part of a name that the kernel keeps, as `comm` shows it. `None`: it ends within a
/// character.
fn kept(name: &str) -> Option<String> {
    let bytes = &name.as_bytes()[..name.len().min(COMM)];
    // The file has a backslash twice (`string_escape`).
    std::str::from_utf8(bytes).ok().map(|kept| kept.replace('\\', "\\\\"))
}

/// Decides how each of `names` is found.
fn addresses(names: &[&str]) -> Vec<Address> {
    let first = |name: &str| name.as_bytes()[..name.len().min(COMM)].to_vec();
    let all: Vec<Vec<u8>> = names.iter().map(|n| first(n)).collect();
    let of = |(i, name): (usize, &&str)| {
        let shared = all.iter().enumerate().any(|(j, other)| j != i && *other == all[i]);
        match kept(name) {
            _ if shared => {
                Address::Unknown("agrees with another one in the 15 bytes that the kernel keeps")
            }
            Some(kept) if !kept.is_empty() => Address::Name(kept),
            _ => Address::Unknown("is cut within a character by the kernel"),
        }
    };
    names.iter().enumerate().map(of).collect()
}

/// A word as a shell reads it.
pub(super) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/,=".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A name as a word: what it is called where it begins a file's name.
pub(super) fn file_word(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "_.".contains(c) { c } else { '_' };
    let name: String = name.chars().take(40).map(safe).collect();
    if name.starts_with('.') || name.is_empty() { format!("rt{name}") } else { name }
}

/// The variables that hold the threads, `T1` for the first name, set by commands.
fn find(page: &mut Page<'_>, names: &[&str]) {
    let found = addresses(names);
    let line = |page: &mut Page<'_>, words: &[&str]| {
        page.command("  ", Ink::Dim, words.iter().map(|w| (*w).to_string()));
    };
    if found.iter().any(|a| matches!(a, Address::Name(_))) {
        line(
            page,
            &["tid()", "{", "set -- $(grep -slxF -e \"$1\" /proc/[0-9]*/task/[0-9]*/comm);"],
        );
        line(page, &["  [ $# = 1 ]", "||", "{ echo \"$# threads: $*\" >&2; return 1; };"]);
        line(page, &["  set -- \"${1%/comm}\"; echo \"${1##*/}\"; }"]);
    }
    for (i, (address, name)) in found.iter().zip(names).enumerate() {
        let n = i + 1;
        match address {
            Address::Name(kept) => line(page, &[&format!("T{n}=$(tid {})", quoted(kept))]),
            Address::Unknown(why) => {
                let why = format!("thread id of {}, whose name {why}", plain(name));
                // Within the quotes, too, a line may go on after a backslash.
                command(page, &format!(": \"${{T{n}:?{why}}}\""));
            }
        }
    }
}

/// A word in quotes, unless it is plain; never an option.
fn quoted(text: &str) -> String {
    match text.starts_with('-') {
        true => format!("'{}'", text.replace('\'', "'\\''")),
        false => word(text),
    }
}

/// A name within double quotes and braces of a shell.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_. ".contains(c) { c } else { '?' })
        .collect()
}

/// Writes the commands of a plan. `governor`: one that is not the kernel's own.
pub(super) fn of_plan(page: &mut Page<'_>, plan: &Plan, governor: Option<&str>) {
    if let Some(governor) = governor {
        command(
            page,
            &format!(
                "echo {governor} | tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
            ),
        );
    }
    for (cpu, freq) in &plan.floors {
        let policy = format!("/sys/devices/system/cpu/cpufreq/policy{}", cpu.0);
        command(page, &format!("echo {} > {policy}/scaling_min_freq", freq.0));
    }
    let kept = match plan.ordinary[..] {
        [cpu] if plan.partitions.contains(&cpu) => Some(cpu),
        _ => None,
    };
    let tasks: Vec<_> = plan.tasks.iter().map(|t| (t.name.as_str(), t.cpu, t.attr)).collect();
    place(page, &tasks, &plan.partitions, kept);
}

/// Puts threads where they belong: by name, CPU and what they ask for. `partitions`: CPUs that are root domains of their own, of which the
/// root group keeps one, if all are.
pub(super) fn place(
    page: &mut Page<'_>,
    tasks: &[(&str, CpuId, Attr)],
    partitions: &[CpuId],
    kept: Option<CpuId>,
) {
    let made: Vec<CpuId> = partitions.iter().copied().filter(|c| Some(*c) != kept).collect();
    let names: Vec<&str> = tasks.iter().map(|t| t.0).collect();
    find(page, &names);
    if !partitions.is_empty() {
        // EPERM until a thread has woken up in the root domain that it was moved to.
        let again = ["dl() { for i in $(seq 100); do", "chrt -d \"$@\" 2>/dev/null && return;"];
        for words in [again, ["  sleep 0.1; done;", "chrt -d \"$@\"; }"]] {
            page.command("  ", Ink::Dim, words.map(str::to_string));
        }
    }
    if !made.is_empty() {
        command(page, "echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control");
    }
    for cpu in &made {
        let dir = group(*cpu);
        command(page, &format!("mkdir {dir}"));
        command(page, &format!("echo threaded > {dir}/cgroup.type"));
        command(page, &format!("echo {} > {dir}/cpuset.cpus", cpu.0));
        command(page, &format!("echo root > {dir}/cpuset.cpus.partition"));
    }
    // All of a process go to the root before any of its threads goes on from there.
    for (i, _) in tasks.iter().enumerate().filter(|(_, t)| made.contains(&t.1)) {
        command(page, &format!("echo $T{} > /sys/fs/cgroup/cgroup.procs", i + 1));
    }
    for (i, (_, cpu, attr)) in tasks.iter().enumerate() {
        let n = i + 1;
        if made.contains(cpu) {
            command(page, &format!("echo $T{n} > {}/cgroup.threads", group(*cpu)));
        } else if kept != Some(*cpu) {
            command(page, &format!("taskset -p -c {} $T{n}", cpu.0));
        }
        let attributes = match attr {
            Attr::Deadline(r, d, p) => {
                format!("dl -T {} -D {} -P {} -p 0 $T{n}", r.0, d.0, p.0)
            }
            Attr::Fifo(priority) => format!("chrt -f -p {priority} $T{n}"),
        };
        command(page, &attributes);
    }
}

/// Writes the commands of a group's server.
pub(super) fn of_server(page: &mut Page<'_>, name: &str, served: &Group) {
    let dir = format!("/sys/fs/cgroup/{}", file_word(name));
    let names: Vec<&str> = served.tasks.iter().map(|t| t.name.as_str()).collect();
    find(page, &names);
    command(page, "echo +cpu > /sys/fs/cgroup/cgroup.subtree_control");
    let (runtime, period) = (served.runtime.0 / 1000, served.period.0 / 1000);
    // The root's own says what all groups below it may have.
    command(page, &format!("echo {runtime} {period} > /sys/fs/cgroup/cpu.rt.max"));
    command(page, &format!("mkdir {dir}"));
    command(page, &format!("echo {runtime} {period} > {dir}/cpu.rt.max"));
    for (i, t) in served.tasks.iter().enumerate() {
        let n = i + 1;
        command(page, &format!("taskset -p -c {} $T{n}", served.cpu.0));
        command(page, &format!("echo $T{n} > {dir}/cgroup.procs"));
        command(page, &format!("chrt -f -p {} $T{n}", t.priority));
    }
}

fn command(page: &mut Page<'_>, text: &str) {
    page.command("  ", Ink::Dim, text.split(' ').map(str::to_string));
}

/// The cgroup of a CPU's threads: a root domain of that CPU alone.
fn group(cpu: CpuId) -> String {
    format!("/sys/fs/cgroup/rt-cpu{}", cpu.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_an_address_only_where_it_is_the_only_one() {
        let names = [
            "control",
            "sensors_fusion_left",
            "sensors_fusion_right",
            "a.*b",
            "-x",
            "it's",
            "a\\b",
        ];
        let found = addresses(&names);
        let by_name = |name: &str| Address::Name(name.into());
        assert_eq!(found[0], by_name("control"));
        assert!(
            matches!((&found[1], &found[2]), (Address::Unknown(_), Address::Unknown(_))),
            "{found:?}"
        );
        assert_eq!(found[3..], ["a.*b", "-x", "it's", "a\\\\b"].map(by_name));
        assert_eq!(["a.*b", "-x", "it's"].map(quoted), ["'a.*b'", "'-x'", "'it'\\''s'"]);
        // 14 bytes, then a character of two.
        assert!(matches!(addresses(&["abcdefghijklmnä"])[..], [Address::Unknown(_)]));
        assert_eq!(file_word("../a b"), "rt.._a_b");
    }
}
