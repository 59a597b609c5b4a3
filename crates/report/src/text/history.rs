//! One experiment under one release after another.
//!
//! ```text
//! energy_mj: energy of all CPUs
//!             kernel   step        95 %     simulated    off
//! 6.1.0-50      9301                             9297   0.0 %  ▇▇▇▇▇▇▇  a bar a side
//! 7.3.4         9411   +110  +105…+116  *        9400  -0.1 %  ▇▇▇▇▇▇▇▇   * sure
//! ```
//!
//! Left out: figures that are nothing, or never, under every release (JSON has them).

use super::Style;
use crate::page::{Doc, Ink, Page, Table};
use crate::words::signed3;
use risetime_analysis::Spread;
use risetime_analysis::compare::{Difference, Family};
use risetime_analysis::history::{Bisected, Build, Figure, History, Side, Taken};

/// Columns that a bar takes at most.
const BAR: usize = 20;

/// Footnote of a history of real kernels.
const BACKPORTS: &str = "A stable release has taken fixes back from later ones: 6.12.107 is not 6.12 \
    as it came out, and what is simulated is the generation's last form where that is known.";

/// The page of a history: which release changed what. Ends in a newline.
pub fn history(h: &History, style: &Style) -> Doc {
    let mut page = Page::new(style);
    let n = h.releases.len();
    let phases = if h.phases == 1 { "start phase" } else { "start phases" };
    let sides = if h.has_real() { "kernel and simulator" } else { "simulated only" };
    let title = format!(
        "{} · {} · {n} releases · {sides} · medians of {} {phases}",
        h.workload, h.platform, h.phases
    );
    page.title(&title, "");
    page.blank();
    if h.has_real() {
        builds(&mut page, h);
    }
    let telling: Vec<(usize, &Figure)> = h.telling().collect();
    for (i, figure) in telling {
        one(&mut page, h, i, figure);
    }
    summary(&mut page, h);
    for note in &h.notes {
        page.note(note);
    }
    missing(&mut page, h);
    page.finish()
}

fn builds(page: &mut Page<'_>, h: &History) {
    let mut table = Table::new(["release", "simulated as", "HZ", "preemption", "uclamp", "EAS"]);
    for r in &h.releases {
        let Build { hz, preemption, uclamp, energy_model } = &r.build;
        let yes = |b: &Option<bool>| b.map_or("?", |b| if b { "yes" } else { "no" }).to_string();
        let preemption = preemption
            .as_deref()
            .map_or("?", |p| if p.is_empty() { "voluntary or none" } else { p });
        table.row([
            r.name.clone(),
            format!("linux-{}", r.rev),
            hz.map_or("?".into(), |hz| hz.to_string()),
            preemption.to_string(),
            yes(uclamp),
            yes(energy_model),
        ]);
    }
    page.table(0, table);
    page.blank();
}

/// The median, or "never".
fn number(s: &Spread) -> String {
    s.median.map_or("never".into(), digits)
}

fn digits(x: f64) -> String {
    if x.abs() >= 1000.0 { format!("{x:.0}") } else { format!("{x:.1}") }
}

fn one(page: &mut Page<'_>, h: &History, i: usize, figure: &Figure) {
    page.heading(figure.name.clone(), format!("  {}", figure.about));
    let medians = h.releases.iter().flat_map(|r| {
        [Side::Real, Side::Simulated]
            .into_iter()
            .filter_map(move |s| r.on(s)?.get(i)?.spread.median)
    });
    let top = medians.fold(0.0, f64::max);
    let real = h.has_real();
    let head: &[&str] = if real {
        &["", "kernel", "step", "95 %", "", "simulated", "", "off"]
    } else {
        &["", "simulated", "step", "95 %", ""]
    };
    let bar_room = page.width() >= 78;
    let mut table = Table::new(head.iter().copied().chain(bar_room.then_some("")));
    for (at, r) in h.releases.iter().enumerate() {
        let mark = |side| if h.changed(at, i, side) { "*" } else { "" }.to_string();
        let simulated = &r.simulated[i].spread;
        let kernel = r.real.as_ref().map(|real| &real[i].spread);
        let step = |side| {
            let step = h.step(at, i, side);
            let median = step.map_or(String::new(), |d| signed3(d.median));
            [median, step.map_or(String::new(), |d| between(&d)), mark(side)]
        };
        let mut cells = vec![r.name.clone()];
        if real {
            cells.push(kernel.map_or("–".into(), number));
            cells.extend(step(Side::Real));
            cells.extend([
                number(simulated),
                mark(Side::Simulated),
                kernel.map_or(String::new(), |real| off(real, simulated)),
            ]);
        } else {
            cells.push(number(simulated));
            cells.extend(step(Side::Simulated));
        }
        if bar_room {
            cells.push(bar(kernel.unwrap_or(simulated), top));
        }
        let ink = (real && h.disagrees(at, i)).then_some(Ink::Warn);
        table.inked(ink, cells);
    }
    page.table(0, table);
    page.blank();
}

/// An interval of a step.
fn between(d: &Difference) -> String {
    format!("{}…{}", signed3(d.interval.0), signed3(d.interval.1))
}

fn off(real: &Spread, simulated: &Spread) -> String {
    match (real.median, simulated.median) {
        (Some(was), Some(is)) if was != 0.0 => format!("{:+.1} %", 100.0 * (is - was) / was),
        _ => String::new(),
    }
}

fn bar(s: &Spread, top: f64) -> String {
    let share = s.median.filter(|_| top > 0.0).map_or(0.0, |m| m / top);
    let n = (share * BAR as f64).round() as usize;
    format!("{:<BAR$}", "▇".repeat(n))
}

/// The largest step of each figure, and where a median stands for two groups.
fn summary(page: &mut Page<'_>, h: &History) {
    let telling: Vec<(usize, &Figure)> = h.telling().collect();
    let side = if h.has_real() { Side::Real } else { Side::Simulated };
    for (i, figure) in &telling {
        let sure = |at: &usize| h.step(*at, *i, side).is_some_and(|d| d.is_sure());
        let Some(at) = h.largest(*i, side).filter(sure) else { continue };
        let of = |at: usize| h.releases[at].on(side).and_then(|all| all.get(*i));
        let (Some(was), Some(is)) = (of(at - 1), of(at)) else { continue };
        let all: Vec<&str> = (0..h.releases.len())
            .filter(|other| *other != at && h.changed(*other, *i, side))
            .map(|other| h.releases[other].name.as_str())
            .collect();
        let also =
            if all.is_empty() { String::new() } else { format!("; also with {}", all.join(", ")) };
        let text = format!(
            "largest step with {}: {} → {}{also}",
            h.releases[at].name,
            number(&was.spread),
            number(&is.spread)
        );
        page.hanging(&format!("{}: ", figure.name), Ink::Plain, &text);
    }
    let none: Vec<String> = (telling.iter())
        .filter(|(i, _)| !(0..h.releases.len()).any(|at| h.changed(at, *i, side)))
        .map(|(i, f)| match h.largest(*i, side) {
            Some(at) => format!("{} (largest: {})", f.name, h.releases[at].name),
            None => f.name.clone(),
        })
        .collect();
    if !none.is_empty() {
        page.hanging("no sure step: ", Ink::Plain, &none.join(", "));
    }
    for (i, figure) in &telling {
        for r in &h.releases {
            let found = r.on(side).and_then(|all| all.get(*i)).and_then(Taken::groups);
            if let Some(groups) = found {
                let head = format!("bistable: {} under {}: ", figure.name, r.name);
                page.hanging("", Ink::Warn, &(head + &in_groups(groups)));
            }
        }
    }
    page.blank();
    let steps = Family(h.releases.len().saturating_sub(1));
    page.paragraph(0, Ink::Dim, &words(steps, h.phases));
    if h.has_real() {
        page.paragraph(0, Ink::Dim, BACKPORTS);
    }
}

/// `3 start phases near 1480, 4 near 2180`.
fn in_groups([low, high]: [(f64, usize); 2]) -> String {
    format!("{} start phases near {}, {} near {}", low.1, digits(low.0), high.1, digits(high.0))
}

/// The sentence on steps that hold together.
fn words(steps: Family, phases: u32) -> String {
    let n = steps.0;
    match phases >= steps.pairs() {
        true => format!(
            "step: to the release before, start phase by start phase; *: sure, its interval lies on one side of 0. The \
             {n} of a figure hold together: one of them misses for at most one figure in 20."
        ),
        false => format!(
            "step: to the release before, start phase by start phase. {phases} start phases are too few to be sure of {n} \
             steps: it takes {}. What stands for their intervals is the least and the largest.",
            steps.pairs()
        ),
    }
}

fn missing(page: &mut Page<'_>, h: &History) {
    if h.missing.is_empty() {
        return;
    }
    let all: Vec<String> = h.missing.iter().map(|rev| rev.to_string()).collect();
    let get: Vec<String> = h.missing.iter().map(|rev| format!("risetime vm fetch {rev}")).collect();
    let text = format!("no kernel of {} was run here: {}", all.join(", "), get.join("; "));
    page.note(&text);
}

/// The page of a bisection: the release with which the figure makes its largest step, or the step
/// of the one that was named. `releases`: their names, oldest first; `between`: releases that could
/// be fetched to look closer. Ends in a newline.
pub fn bisected(
    (figure, phases): (&str, u32),
    side: Side,
    releases: &[String],
    found: &Bisected,
    between_them: &[String],
    style: &Style,
) -> Doc {
    let mut page = Page::new(style);
    let whose = match side {
        Side::Real => "the kernel",
        Side::Simulated => "the simulator",
    };
    let place = found.first.and_then(|first| found.asked.iter().position(|(i, ..)| *i == first));
    let step = place.and_then(|at| Some((at.checked_sub(1)?, at, found.asked[at].2?)));
    let answer = match step {
        Some((was, is, step)) => {
            let of = |at: usize| number(&found.asked[at].1.spread);
            let (older, newer) = (&releases[found.asked[was].0], &releases[found.asked[is].0]);
            let what = match found.asked.len() {
                2 => "differs from",
                _ => "makes its largest step from",
            };
            let sure = if step.is_sure() {
                "which is sure"
            } else {
                "which is not sure: more --phases may tell"
            };
            format!(
                "{figure} with {newer} {what} {older}: {} → {}, {} ({}), {sure}.",
                of(was),
                of(is),
                signed3(step.median),
                between(&step)
            )
        }
        None => format!("{figure} is the same under every release."),
    };
    page.paragraph(0, Ink::Strong, &answer);
    page.blank();
    let heads =
        [format!("asked {whose}"), figure.to_string(), "step".into(), "95 %".into(), String::new()];
    let mut table = Table::new(heads);
    for (i, taken, step) in &found.asked {
        let word = |of: &dyn Fn(&Difference) -> String| step.as_ref().map_or(String::new(), of);
        table.row([
            releases[*i].clone(),
            number(&taken.spread),
            word(&|d| signed3(d.median)),
            word(&between),
            word(&|d| if d.is_sure() { "*".into() } else { String::new() }),
        ]);
    }
    page.table(0, table);
    for (i, taken, _) in &found.asked {
        if let Some(groups) = taken.groups() {
            let text = format!("bistable under {}: {}", releases[*i], in_groups(groups));
            page.hanging("", Ink::Warn, &text);
        }
    }
    page.blank();
    page.paragraph(0, Ink::Dim, &words(Family(found.asked.len().saturating_sub(1)), phases));
    if let (Some((was, is, _)), false) = (step, between_them.is_empty()) {
        page.blank();
        let text = format!(
            "between {} and {} the mirror has {}: risetime vm fetch gets one, and --bisect looks closer",
            releases[found.asked[was].0],
            releases[found.asked[is].0],
            between_them.join(", ")
        );
        page.note(&text);
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_analysis::history::Release;
    use risetime_kernel::KernelRev;

    const PLAIN: Style = Style { width: 80, color: false, unicode: true };

    fn taken(values: &[f64]) -> Taken {
        Taken::of(values.iter().copied().map(Some).collect())
    }

    fn made_up() -> History {
        let figure = |name: &str, about: &str| Figure { name: name.into(), about: about.into() };
        let release = |name: &str, rev, real: f64, simulated: f64| Release {
            name: name.into(),
            rev,
            build: Build {
                hz: Some(250),
                preemption: Some(String::new()),
                uclamp: Some(false),
                energy_model: None,
            },
            real: Some(vec![
                taken(&[real, real, real + 2.0, real, real, real + 1.0]),
                Taken::of(vec![None; 6]),
                taken(&[0.0; 6]),
            ]),
            simulated: vec![
                taken(&[simulated; 6]),
                taken(&[55.0, 55.0, 56.0, 55.0, 55.0, 55.5]),
                taken(&[0.0; 6]),
            ],
        };
        History {
            workload: "rampup".into(),
            platform: "m1".into(),
            task: "rampup".into(),
            phases: 6,
            figures: vec![
                figure("energy_mj", "energy of all CPUs"),
                figure("full_speed_ms", "until full speed"),
                figure("wait_ms", "waiting"),
            ],
            releases: vec![
                release("6.1.0-50-arm64", KernelRev::V6_1, 3000.0, 3001.0),
                release("7.3.4+deb13-arm64", KernelRev::V7_3, 1500.0, 3001.0),
            ],
            missing: vec![KernelRev::V6_12],
            notes: vec!["6.1.0-50-arm64: it was slow".into()],
        }
    }

    #[test]
    fn what_changed_and_what_is_off_is_said() {
        let page = history(&made_up(), &PLAIN);
        assert!(page.lines().all(|l| l.chars().count() <= 80), "{page}");
        for line in [
            "rampup · m1 · 2 releases · kernel and simulator · medians of 6 start phases",
            "energy_mj: largest step with 7.3.4+deb13-arm64: 3000 → 1500",
            "note: 6.1.0-50-arm64: it was slow",
            "note: no kernel of 6.12 was run here: risetime vm fetch 6.12",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
        let of = |what: &str| page.lines().find(|l| l.contains(what)).unwrap_or_default();
        assert!(
            of("voluntary or none").contains("linux-6.1")
                && of("voluntary or none").ends_with("no    ?"),
            "{page}"
        );
        assert!(page.contains("never") && page.contains("+100.1 %"), "{page}");
        assert!(!page.contains("wait_ms"), "nobody ever waited: {page}");
        let narrow = history(&made_up(), &Style { width: 40, unicode: false, ..PLAIN });
        assert!(narrow.is_ascii() && narrow.lines().all(|l| l.len() <= 40), "{narrow}");
    }

    #[test]
    fn a_bisection_names_the_release_and_what_lies_between() {
        let names = ["6.1.0-50-arm64".to_string(), "7.3.4+deb13-arm64".to_string()];
        let of = |newer: &[f64], step: Option<usize>| {
            let asked = vec![(0, taken(&[1.0; 6])), (1, taken(newer))];
            let found = Bisected::of(asked);
            let found = Bisected { first: step.or(found.first), ..found };
            let between = ["6.12.107".to_string()];
            bisected(("energy_mj", 6), Side::Real, &names, &found, &between, &PLAIN)
        };
        let found = of(&[2.0, 2.0, 2.0, 9.0, 9.0, 9.1], None);
        let first = "energy_mj with 7.3.4+deb13-arm64 differs from 6.1.0-50-arm64: 1.0 →";
        assert!(found.starts_with(first) && found.contains("which is sure"), "{found}");
        assert!(found.contains("the mirror has 6.12.107"), "{found}");
        let groups = "bistable under 7.3.4+deb13-arm64: 3 start phases near 2.0, 3 near 9.0";
        assert!(found.contains(groups), "{found}");
        let unsure = [2.0, 0.5, 2.0, 0.5, 1.0, 1.0];
        let named = of(&unsure, Some(1)).replace('\n', " ");
        assert!(named.contains("which is not sure: more --phases may tell"), "{named}");
        assert!(of(&[1.0; 6], None).starts_with("energy_mj is the same under every release."));
    }

    #[test]
    fn json_and_picture_hold_every_release() {
        let h = made_up();
        let json: serde_json::Value = serde_json::from_str(&crate::json::history(&h)).unwrap();
        assert_eq!(json["releases"][1]["kernel"][0]["changed"], true);
        assert_eq!(
            json["releases"][1]["differ"],
            serde_json::json!(["energy_mj", "full_speed_ms"])
        );
        assert_eq!(json["missing"], serde_json::json!(["6.12"]));
        let svg = crate::picture::history(&h).svg(crate::chart::Theme::Light);
        assert!(
            svg.contains(">6.1.0-50<") && svg.contains(">7.3.4<") && svg.ends_with("</svg>\n"),
            "{svg}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!svg.contains("wait_ms"));
    }
}
