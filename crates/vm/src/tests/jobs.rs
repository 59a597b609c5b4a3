//! Tests of what an experiment asks of the guest, and of what came of its quotas.

use super::*;

#[test]
fn frequency_limits_are_written_as_opps_of_each_policy() {
    let limits = |policy: &str| -> Vec<(String, String)> {
        let job = planned(&experiment(policy), &[]).unwrap().job;
        let of = |(path, value): &(String, String)| {
            let name = path.strip_prefix("/sys/devices/system/cpu/cpufreq/")?;
            name.contains("_freq").then(|| (name.to_string(), value.clone()))
        };
        job.set.iter().filter_map(of).collect()
    };
    let wanted = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        all.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect()
    };
    assert_eq!(limits("linux-7.2"), []);
    assert_eq!(
        limits("linux-7.2+scaling_max_freq=1000000+scaling_min_freq.policy4=700000"),
        wanted(&[
            ("policy0/scaling_max_freq", "972000"),
            ("policy4/scaling_max_freq", "828000"),
            ("policy4/scaling_min_freq", "828000"),
        ])
    );
}

#[test]
fn a_job_holds_the_run() {
    let e = experiment("linux-7.2+rate_limit_us=70+uclamp_max=300+governor=schedutil");
    let modules =
        ["cpufreq-dt.ko", "cpufreq_ondemand.ko", "cpufreq_userspace.ko"].map(String::from);
    let job = planned(&e, &modules).unwrap().job;
    assert_eq!(job.modules, ["/modules/cpufreq-dt.ko"]);
    assert_eq!((job.first_cpu, job.duration_ns, job.cpus.len()), (0, 10_000_000, 8));
    assert_eq!(job.tasks[0].attr.uclamp_max, Some(300));
    assert!(job.set.contains(&(
        "/sys/devices/system/cpu/cpufreq/schedutil/rate_limit_us".into(),
        "70".into()
    )));
    assert_eq!(risetime_job::job::Job::parse(&job.to_text()), Ok(job));
    let e = experiment("linux-7.2+governor=userspace+scaling_setspeed=972000+first_cpu=5");
    let job = planned(&e, &modules).unwrap().job;
    assert_eq!(job.modules, ["/modules/cpufreq_userspace.ko", "/modules/cpufreq-dt.ko"]);
    assert_eq!(job.first_cpu, 5);
    let speeds: Vec<&str> = job
        .set
        .iter()
        .filter(|(p, _)| p.ends_with("/scaling_setspeed"))
        .map(|(p, _)| p.as_str())
        .collect();
    assert_eq!(speeds.len(), 2, "{speeds:?}");
}

/// A group without a quota has nothing to tell, and a kernel that does not say has not said 0.
#[test]
fn what_came_of_a_quota_is_read_from_its_group() {
    let text = r#"{"taskgroups": {"/a": {}, "/b": {"quota_us": 5000}, "/c": {"quota_us": 5000}},
                   "tasks": {"t": {"taskgroup": "/b", "run": 5}}}"#;
    let workload = Workload::parse(text, "w").unwrap();
    let at = "/sys/fs/cgroup/b/cpu.stat";
    let e = Experiment { workload: Arc::new(workload.clone()), ..experiment("linux-7.2") };
    let read = planned(&e, &[]).unwrap().job.read;
    assert_eq!(read.iter().filter(|path| path.ends_with("cpu.stat")).count(), 2);
    assert!(read.iter().any(|path| path == at));
    let said =
        "usage_usec 99\nnr_periods 21\nnr_throttled 20\nthrottled_usec 3354052\nnr_bursts 0\n";
    let values = [(at.to_string(), said.to_string())].into_iter().collect();
    let time = Span(3_354_052_000);
    let stat = QuotaStat { periods: 21, throttled: 20, time, longest: None };
    let group = workload.group_paths().iter().position(|path| path == "/b").unwrap();
    let told = Event::Quota { group: GroupId(group as u32), stat };
    assert_eq!(crate::quotas(&workload.groups, &values), [told]);
}

/// Events that cost time in the guest are only asked for where they are needed.
#[test]
fn quotas_and_hotplug_have_events_of_their_own() {
    let job = |text: &str| {
        let workload = Arc::new(Workload::parse(text, "w").unwrap());
        planned(&Experiment { workload, ..experiment("linux-7.2") }, &[]).unwrap().job
    };
    let told = |job: &risetime_job::job::Job| {
        let has = |list: &[String], what: &str| list.iter().any(|l| l.contains(what));
        (has(&job.probes, "cfs_period"), has(&job.events, "cpuhp"))
    };
    let task = r#""tasks": {"t": {"taskgroup": "/a", "run": 5}}"#;
    let group = |quota: &str| format!(r#"{{"taskgroups": {{"/a": {{{quota}}}}}, {task}}}"#);
    assert_eq!(told(&job(&group(""))), (false, false));
    assert_eq!(told(&job(&group(r#""quota_us": 5000"#))), (true, false));
    let plugged = job(
        r#"{"global": {"hotplug": [{"at_us": 7, "cpu": 5, "online": 0}]}, "tasks": {"t": {"run": 5}}}"#,
    );
    assert_eq!(told(&plugged), (false, true));
    let [change] = plugged.hotplug[..] else { panic!("{:?}", plugged.hotplug) };
    assert_eq!((change.at, change.cpu, change.online), (Span(7_000), CpuId(5), false));
}

/// Partitions and the groups in them, as the agent is to make them on the eight CPUs of `m1`.
#[test]
fn partitions_become_cpusets_and_leave_the_root_a_cpu() {
    let made = |partitions: &str, groups: &str, tasks: &str| {
        let global = format!(r#""global": {{"partitions": {partitions}}}"#);
        let text = format!(r#"{{{global}, "taskgroups": {{{groups}}}, "tasks": {{{tasks}}}}}"#);
        let workload = Arc::new(Workload::parse(&text, "w").unwrap());
        let job = planned(&Experiment { workload, ..experiment("linux-7.2") }, &[])?.job;
        assert_eq!(risetime_job::job::Job::parse(&job.to_text()).unwrap(), job);
        let paths: Vec<String> = job.groups.iter().map(|g| g.path.clone()).collect();
        let quota = job.read.iter().find(|path| path.ends_with("/cpu.stat")).cloned();
        Ok::<_, InputError>((job.partitions, paths.join(" "), quota.unwrap_or_default()))
    };
    let task = |name: &str, cpus: &str, group: &str| {
        let group =
            if group.is_empty() { String::new() } else { format!(r#""taskgroup": "{group}","#) };
        format!(r#""{name}": {{"cpus": {cpus}, {group} "run": 5, "sleep": 5}}"#)
    };
    let none = || (String::new(), String::new());
    let (a, b) = (task("a", "[1]", ""), task("b", "[4, 5]", ""));
    let found = made("[[1], [5, 4]]", "", &format!("{a}, {b}")).unwrap();
    assert_eq!(found, (vec![vec![1], vec![4, 5]], none().0, none().1));
    // Every CPU is in one: where the first task begins is what the root is left with.
    let every = "[[0, 2, 3], [1], [4, 5], [6, 7]]";
    let found = made(every, "", &format!("{a}, {b}")).unwrap().0;
    assert_eq!(found, [vec![0, 2, 3], vec![4, 5], vec![6, 7]]);
    let found = made(every, "", &format!("{b}, {a}")).unwrap().0;
    assert_eq!(found, [vec![0, 2, 3], vec![1], vec![6, 7]]);
    assert!(made("[[0, 1, 2, 3, 4, 5, 6, 7]]", "", &a).unwrap().0.is_empty());
    // A group lies where its tasks are.
    let groups = r#""/g": {"quota_us": 5000}, "/g/h": {}, "/o": {}"#;
    let (inner, other) = (task("i", "[4]", "/g/h"), task("o", "[0]", "/o"));
    let found = made("[[1], [4, 5]]", groups, &format!("{a}, {inner}, {other}")).unwrap();
    let within = "/risetime-partition-2/g";
    assert_eq!(found.1, format!("{within} {within}/h /o"));
    assert_eq!(found.2, format!("/sys/fs/cgroup{within}/cpu.stat"));
    let both = format!("{}, {}", task("x", "[1]", "/g"), inner);
    let wrong = made("[[1], [4, 5]]", groups, &both).unwrap_err().to_string();
    assert!(wrong.contains("task group `/g`: has tasks of several `partitions`"), "{wrong}");
    let text = r#"{"global": {"partitions": [[1]], "hotplug": [{"at_us": 7, "cpu": 5, "online": 0}]},
        "tasks": {"t": {"cpus": [1], "run": 5}}}"#;
    let workload = Arc::new(Workload::parse(text, "w").unwrap());
    let wrong = planned(&Experiment { workload, ..experiment("linux-7.2") }, &[]).unwrap_err();
    assert!(wrong.to_string().contains("not beside `partitions`"), "{wrong}");
}
