//! Examples below the long help of the commands that are used most.

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  risetime run rampup --platform m1
      how a task that becomes busy climbs on a Mac mini M1 under mainline, Linux 7.2
  risetime run rampup --platform m1 --policy linux-6.8 --policy linux-6.8+rate_limit_us=70
      the same under two policies, side by side
  risetime run rampup --platform m1 --uclamp-min 1024 --phases 16
      with a performance hint; medians over 16 start phases
  risetime run my-app.json --platform my-soc.toml --perfetto ramp.perfetto-trace
      your own rt-app workload on your own machine's description; open the file in Perfetto
  risetime run rampup --platform m1 --set governor=performance --format json
  risetime run rampup --platform m1 --policy linux-6.8 --policy rfc-v1 --plot ramp.png
      two policies drawn over each other, to be looked at or mailed
  risetime run rampup --platform m1 --backend vm
      the same on a real kernel, in a virtual machine that is such a Mac mini to its scheduler
  git bisect run sh -c 'make -j8 Image || exit 125; risetime run rampup --platform m1 --backend vm \
    --kernel arch/arm64/boot/Image --expect \"rampup.debt <= 95ms\" --git-bisect'
      which commit made a kernel slower";

pub(super) const COMPARE_EXAMPLES: &str = "\
Examples:
  risetime compare rampup --platform m1 --policy linux-6.11 --policy rfc-v1 --policy rfc-v1-x2
      over 16 start phases and 4 start utils: what they lose, what they take
  risetime compare rampup --platform m1 --ablate rfc-v1 --plot rfc-v1.svg
      each patch of the series left out, and each alone: what it buys in ms, and costs in mJ
  risetime compare my-app.json --platform my-soc.toml --policy mainline --policy mainline+rate_limit_us=70 --start-utils own
  risetime compare phone -p pixel6 --policy linux-6.12 --policy linux-7.2 --seconds 2
      all activations of its first task, energy and work done; --metric NAME compares by other figures
  risetime compare phone -p pixel6 --policy linux-6.12 --policy linux-7.2 --seconds 2 --format mail
  risetime compare phone -p pixel6 -p m1 --policy linux-7.2 --metric ui.activation_p99
      one policy on several platforms";

pub(super) const SWEEP_EXAMPLES: &str = "\
Examples:
  risetime sweep phone --platform pixel6 --vary rate_limit_us=500..4000:500 --metric ui.activation_p99 --metric energy
      a figure over a setting, drawn as a curve
  risetime sweep chain.json --platform pixel6 --vary ui.run=1000..6000:500 --vary policy=linux-6.8,linux-7.2 \\
    --metric frame.missed
      over a key of the workload and a policy: a map
  risetime sweep rampup --platform m1 --vary kernel=6.1,6.8,7.2 --vary hz=100,250,1000 --metric rampup.debt --format csv

What can be varied: a setting (`risetime list settings`); a key of the workload's file below a task (ui.run,
ui.timer.period, ui.phases.busy.run, ui.run#2 where there are several) or of global (global.duration); policy, platform,
workload, kernel, hz, seconds, seed.
Values: A..B:STEP, A..B*FACTOR, or a list with commas.";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  risetime explain rampup --platform m1
      what a busy task on a Mac mini M1 loses, and to what
  risetime explain rampup --platform m1 --policy rfc-v1 --phases 16
      the same under the response-time series; medians over 16 start phases
  risetime explain phone --platform pixel6 --task ui --over worst --seconds 2
      why the slowest 1 % of its activations take so long; --over all, --over 17: all, or one (of jobs, too: docs/jobs.md)
  risetime explain my-app.json --platform my-soc.toml --task render --format json
  risetime run rampup --platform m1 --without margin
      a run without one cause: what `saves` says";

pub(super) const ADVISE_EXAMPLES: &str = "\
Examples:
  risetime advise my-app.json --platform my-soc.toml
      the workload's first job, or its first task: what makes it faster, for how much energy, and how to apply it
  risetime advise phone --platform pixel6 --task render --policy linux-7.3
  risetime advise rampup --platform m1 --metric rampup.full_speed --budget 600
  risetime advise game --platform pixel6 --seconds 2 --goal 'frame.missed = 0' --least energy
      the cheapest change with which no frame is missed, clamps to 8 of 1024
  risetime advise periodic --platform rpi4 --policy linux-7.3 --real
      and does its first line hold on a real kernel, in a virtual machine?";

pub(super) const HISTORY_EXAMPLES: &str = "\
Examples:
  risetime history rampup --platform m1
      under every release in the cache (`risetime vm kernels`), and simulated as each
  risetime history phone --platform pixel6 --task render --plot phone.svg
  risetime history rampup --platform m1 --bisect lost_ms
      the largest step from one release to the next; --step 6.12: that one
  risetime history rampup --platform m1 --simulated
      without a kernel: every generation that is simulated";

pub(super) const IMPORT_EXAMPLES: &str = "\
Examples:
  risetime import arch/arm64/boot/dts/rockchip/rk3588-rock-5b.dts --hz 250 -o rock5b.toml
      a board's device tree as the kernel has it, with what it includes
  risetime import board.dtb em.txt config-6.12 -o board.toml
      flattened, the power from an energy model that `grep -r . /sys/kernel/debug/energy_model` printed,
      HZ from the kernel's configuration
  ssh phone 'cd / && tar cf - sys/devices/system/cpu sys/kernel/debug/energy_model' > phone.tar
  risetime import phone.tar --hz 250 -o phone.toml
  risetime import plat_info.yml -o juno.toml

What no input says is a comment of the file (`# missing: …`), and never invented. What a run cannot do without is
marked `= ?` there, and the command fails with what to add.";

pub(super) const CONVERT_EXAMPLES: &str = "\
Examples:
  risetime convert trace.dat trace.pftrace
      what trace-cmd recorded, for ui.perfetto.dev
  risetime convert phone.perfetto-trace phone.txt
      what traced recorded, as the kernel's own text
  risetime convert trace.dat trace.txt --buffer latency
      another buffer of the file than the top one

Formats: what is read is told from the content; the ending of OUTPUT says what is written (.pftrace, .perfetto-trace: Perfetto;
.txt, .ftrace: text).";
