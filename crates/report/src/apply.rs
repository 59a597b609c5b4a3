//! The lines by which steps are taken on a real system, and again with the command.

use risetime_analysis::advice::{Step, Steps};
use risetime_model::settings::Home;
use risetime_model::settings::keys::GOVERNOR;

/// Finds threads by name for the lines that need them: processes and threads, instances of a name too.
pub(crate) const TIDS: &str =
    r#"tids() { ps -eLo tid,comm | sed -nE "s/^ *([0-9]+) ($1)(-[0-9]+)?$/\1/p"; }"#;

/// A thread's name is cut there (TASK_COMM_LEN).
const COMM: usize = 15;

/// Steps in which several tasks get the same value of the same key, as one: whose, what, which value.
fn together(steps: &Steps) -> Vec<(Vec<&str>, &str, String)> {
    let mut all: Vec<(Vec<&str>, &str, String)> = Vec::new();
    for step in steps {
        let Step::Workload(change) = step else { continue };
        let same = all.iter_mut().find(|(_, key, value)| {
            *key == change.key && *value == change.value && !change.of.starts_with('/')
        });
        match same {
            Some((whose, ..)) => whose.push(&change.of),
            None => all.push((vec![&change.of], &change.key, change.value.clone())),
        }
    }
    all
}

fn settings(steps: &Steps) -> impl Iterator<Item = (&str, String, Home)> {
    steps.iter().filter_map(|step| match step {
        Step::Setting { name, value, home } => Some((name.as_str(), value.to_string(), *home)),
        Step::Workload(_) => None,
    })
}

/// Lists the changes in few words.
pub(crate) fn words(steps: &Steps) -> String {
    let of_tasks = together(steps).into_iter().map(|(whose, key, value)| {
        let list = key == "cpus";
        let value = if list { cpu_list(&value) } else { value };
        format!("{}: {key} {value}", whose.join(", "))
    });
    let of_all = settings(steps).map(|(name, value, _)| format!("{name} {value}"));
    of_tasks.chain(of_all).collect::<Vec<_>>().join("; ")
}

/// Writes the changes as lines for a shell, run as root.
pub(crate) fn lines(steps: &Steps) -> Vec<String> {
    let of_tasks = together(steps).into_iter().map(|(whose, key, value)| match whose[0] {
        path if path.starts_with('/') => of_group(path, key, &value),
        _ => of_tasks(&whose, key, &value),
    });
    of_tasks
        .chain(settings(steps).map(|(name, value, home)| of_system(name, &value, home)))
        .collect()
}

/// Whether one of `lines` needs [`TIDS`].
pub(crate) fn needs_tids(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains("$(tids "))
}

fn of_tasks(whose: &[&str], key: &str, value: &str) -> String {
    let names: Vec<String> = whose.iter().map(|name| name.chars().take(COMM).collect()).collect();
    let tids = format!("$(tids '{}')", names.join("|"));
    let each = |what: String| format!("for t in {tids}; do {what} $t; done");
    match key {
        "util_min" => each(format!("uclampset -m {value} -p")),
        "util_max" => each(format!("uclampset -M {value} -p")),
        "priority" => format!("renice -n {value} -p {tids}"),
        "cpus" => each(format!("taskset -cp {}", cpu_list(value))),
        // µs in the file, ns for the kernel.
        "dl-runtime" => each(format!("chrt -o -T {value}000 -p 0")),
        _ => format!("sched_setattr of {}: {key} {value}", names.join(", ")),
    }
}

fn of_group(path: &str, key: &str, value: &str) -> String {
    // Clamps of groups are percentages.
    let percent = || value.parse().map_or(0.0, |util: f64| util * 100.0 / 1024.0);
    let (value, file) = match key {
        "uclamp_min" => (format!("{:.2}", percent()), "cpu.uclamp.min"),
        "uclamp_max" => (format!("{:.2}", percent()), "cpu.uclamp.max"),
        _ => (value.to_string(), "cpu.weight"),
    };
    format!("echo {value} > /sys/fs/cgroup{path}/{file}")
}

fn of_system(name: &str, value: &str, home: Home) -> String {
    match (home, &home.everywhere()[..]) {
        (Home::Patched(Some(path), _), _) if path.starts_with("cpufreq/") => {
            format!("echo {value} | tee $(ls /sys/devices/system/cpu/{path} 2>/dev/null)")
        }
        (Home::Sysctl(key) | Home::Patched(Some(key), _), _) if key.contains('.') => {
            format!("sysctl -w {key}={value}")
        }
        // Eight digits, as four bytes would be a number as it is in memory; in force until the shell ends.
        (Home::Device(file), _) => format!("exec 9>/dev/{file}; printf '0x%08x' {value} >&9"),
        (Home::Boot(parameter), _) => format!("at boot: {parameter}{value}"),
        (Home::Feature(_), _) => format!("{name}={value} ({home})"),
        (_, [file]) if file.contains('*') => format!("echo {value} | tee {file}"),
        (_, [file]) => format!("echo {value} > {file}"),
        // One file for all policies, or one in the directory of each, as the driver decides.
        (_, files @ [_, ..]) => {
            format!("echo {value} | tee $(ls {} 2>/dev/null)", files.join(" "))
        }
        _ => format!("{name}={value} ({home})"),
    }
}

/// `[0,1,2,6]` as `0-2,6`.
fn cpu_list(json: &str) -> String {
    let numbers = json.trim_matches(['[', ']']).split(',').filter_map(|n| n.trim().parse().ok());
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |(a, b): (u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    ranges.into_iter().map(range).collect::<Vec<_>>().join(",")
}

/// `command` with the steps taken: another governor in place of the one that it names.
pub(crate) fn again(command: &str, steps: &Steps) -> Vec<String> {
    let of_it = |part: &str| part.starts_with("governor=");
    let mut words: Vec<String> = command.split(' ').map(String::from).collect();
    if settings(steps).any(|(name, ..)| name == GOVERNOR.name()) {
        while let Some(i) = words.windows(2).position(|w| w[0] == "--set" && of_it(&w[1])) {
            words.drain(i..i + 2);
        }
        for word in &mut words {
            *word = word.split('+').filter(|part| !of_it(part)).collect::<Vec<_>>().join("+");
        }
    }
    std::iter::once(words.join(" ")).chain(options(steps)).collect()
}

/// The options of `risetime run` that take the steps.
pub(crate) fn options(steps: &Steps) -> Vec<String> {
    let quoted = |text: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-=/:@+,".contains(c);
        if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
    };
    let option = |step: &Step| match step {
        Step::Workload(change) => format!("--vary {}", quoted(change.to_string())),
        Step::Setting { name, value, .. } => format!("--set {}", quoted(format!("{name}={value}"))),
    };
    steps.iter().map(option).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_model::settings::Value;
    use risetime_model::workload::KeyOf;

    fn task(of: &str, key: &str, value: &str) -> Step {
        Step::Workload(KeyOf::new(of, key, value))
    }

    #[test]
    fn each_change_has_its_line() {
        let rate_limit = Step::Setting {
            name: "rate_limit_us".into(),
            value: Value::Int(500),
            home: Home::Tunable("schedutil/rate_limit_us"),
        };
        for (steps, line) in [
            (
                vec![task("ui", "util_min", "512"), task("render", "util_min", "512")],
                "for t in $(tids 'ui|render'); do uclampset -m 512 -p $t; done",
            ),
            (
                vec![task("a-very-long-name-of-a-thread", "priority", "-5")],
                "renice -n -5 -p $(tids 'a-very-long-nam')",
            ),
            (
                vec![task("hog", "cpus", "[0,1,2,6]")],
                "for t in $(tids 'hog'); do taskset -cp 0-2,6 $t; done",
            ),
            (
                vec![task("ui", "dl-runtime", "300")],
                "for t in $(tids 'ui'); do chrt -o -T 300000 -p 0 $t; done",
            ),
            (
                vec![task("/ui", "uclamp_min", "512")],
                "echo 50.00 > /sys/fs/cgroup/ui/cpu.uclamp.min",
            ),
            (vec![task("/ui", "weight", "300")], "echo 300 > /sys/fs/cgroup/ui/cpu.weight"),
            (
                vec![rate_limit],
                "echo 500 | tee $(ls /sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us \
              /sys/devices/system/cpu/cpufreq/policy*/schedutil/rate_limit_us 2>/dev/null)",
            ),
        ] {
            assert_eq!(lines(&steps), [line]);
        }
    }

    #[test]
    fn options_are_what_a_shell_takes() {
        let steps = vec![task("my ui", "cpus", "[4,5]"), task("ui", "util_min", "512")];
        let governor = |name: &str| {
            vec![Step::Setting {
                name: "governor".into(),
                value: Value::Name(name.into()),
                home: Home::Policy("scaling_governor"),
            }]
        };
        let command =
            "risetime run w --policy linux-6.12+governor=ondemand --set governor=ondemand";
        assert_eq!(
            again(command, &governor("performance")),
            ["risetime run w --policy linux-6.12", "--set governor=performance"]
        );
        assert_eq!(again(command, &steps)[0], command);
        assert_eq!(options(&steps), ["--vary 'my ui.cpus=[4,5]'", "--vary ui.util_min=512"]);
        assert_eq!(words(&steps), "my ui: cpus 4-5; ui: util_min 512");
    }
}
