//! One experiment under one release after another.
//!
//! ```text
//! energy_mj: energy of all CPUs
//!             kernel   25…75 %  simulated    off
//! 6.1.0-50      9301 9290…9320       9297   0.0 %  ▇▇▇▇▇▇▇  a bar a side
//! 7.3.4         9411 …              9400  -0.1 %  ▇▇▇▇▇▇▇▇   * changed
//! ```
//!
//! Left out: figures that are nothing, or never, under every release (JSON has them).

use super::Style;
use super::page::{Ink, Line, Page, Table};
use risetime_analysis::Spread;
use risetime_analysis::history::{Bisected, Build, Figure, History, Release, Side};

/// Columns that a bar takes at most.
const BAR: usize = 20;

/// What stands below a history of real kernels.
const BACKPORTS: &str = "A stable release has taken fixes back from later ones: 6.12.107 is not 6.12 \
    as it came out, and what is simulated is the generation's last form where that is known.";

/// Which release changed what? Ends in a newline.
pub fn history(h: &History, style: &Style) -> String {
    let mut page = Page::new(style);
    let n = h.releases.len();
    let phases = if h.phases == 1 { "start phase" } else { "start phases" };
    let sides = if h.has_real() { "kernel and simulator" } else { "simulated only" };
    let title = format!(
        "{} · {} · {n} releases · {sides} · medians of {} {phases}",
        h.workload, h.platform, h.phases
    );
    page.hanging("", Ink::Title, &title);
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
        page.hanging("note: ", Ink::Dim, note);
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
    page.table(0, &table);
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
    let line = Line::new().ink(Ink::Title, figure.name.clone());
    page.line(line.ink(Ink::Dim, format!("  {}", figure.about)));
    let medians = h.releases.iter().flat_map(|r| {
        [Side::Real, Side::Simulated].into_iter().filter_map(move |s| r.on(s)?.get(i)?.median)
    });
    let top = medians.fold(0.0, f64::max);
    let real = h.has_real();
    let head: &[&str] = if real {
        &["", "kernel", "25…75 %", "", "simulated", "", "off"]
    } else {
        &["", "simulated", "25…75 %", ""]
    };
    let bar_room = page.width() >= 78;
    let mut table = Table::new(head.iter().copied().chain(bar_room.then_some("")));
    for (at, r) in h.releases.iter().enumerate() {
        let mark = |side| if h.changed(at, i, side) { "*" } else { "" }.to_string();
        let simulated = &r.simulated[i];
        let shown = r.real.as_ref().map_or(simulated, |real| &real[i]);
        let mut cells = vec![r.name.clone()];
        if real {
            cells.extend([
                r.real.as_ref().map_or("–".into(), |real| number(&real[i])),
                r.real.as_ref().map_or(String::new(), |real| middle(&real[i])),
                mark(Side::Real),
                number(simulated),
                mark(Side::Simulated),
                r.real.as_ref().map_or(String::new(), |real| off(&real[i], simulated)),
            ]);
        } else {
            cells.extend([number(simulated), middle(simulated), mark(Side::Simulated)]);
        }
        if bar_room {
            cells.push(bar(shown, top));
        }
        let ink = (real && h.disagrees(at, i)).then_some(Ink::Warn);
        table.inked(ink, cells);
    }
    page.table(0, &table);
    page.blank();
}

/// First to third quartile.
fn middle(s: &Spread) -> String {
    match (s.q1, s.q3) {
        (Some(q1), Some(q3)) => format!("{}…{}", digits(q1), digits(q3)),
        (Some(q1), None) => format!("{}…never", digits(q1)),
        _ => String::new(),
    }
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

/// What each release changed, in a sentence each.
fn summary(page: &mut Page<'_>, h: &History) {
    let telling: Vec<(usize, &Figure)> = h.telling().collect();
    let side = if h.has_real() { Side::Real } else { Side::Simulated };
    for (at, r) in h.releases.iter().enumerate().skip(1) {
        let change = |(i, f): &(usize, &Figure)| {
            let figures = |r: &Release| r.on(side)?.get(*i).copied();
            let (was, is) = (figures(&h.releases[at - 1])?, figures(r)?);
            h.changed(at, *i, side)
                .then(|| format!("{} {} → {}", f.name, number(&was), number(&is)))
        };
        let all: Vec<String> = telling.iter().filter_map(change).collect();
        let text = if all.is_empty() { "nothing".into() } else { all.join(", ") };
        page.hanging(&format!("{} changed: ", r.name), Ink::Plain, &text);
    }
    page.blank();
    let words = "*: another median than under the release before, by more than the wider of the two \
                 middle halves over start phases and by more than 1 %.";
    page.paragraph(0, Ink::Dim, words);
    if h.has_real() {
        page.paragraph(0, Ink::Dim, BACKPORTS);
    }
}

fn missing(page: &mut Page<'_>, h: &History) {
    if h.missing.is_empty() {
        return;
    }
    let all: Vec<String> = h.missing.iter().map(|rev| rev.to_string()).collect();
    let get: Vec<String> = h.missing.iter().map(|rev| format!("risetime vm fetch {rev}")).collect();
    let text = format!("no kernel of {} was run here: {}", all.join(", "), get.join("; "));
    page.hanging("note: ", Ink::Dim, &text);
}

/// Which release was the first that differs? `releases`: their names, oldest first; `between`: releases that
/// could be fetched to look closer. Ends in a newline.
pub fn bisected(
    figure: &str,
    side: Side,
    releases: &[String],
    found: &Bisected,
    between: &[String],
    style: &Style,
) -> String {
    let mut page = Page::new(style);
    let whose = match side {
        Side::Real => "the kernel",
        Side::Simulated => "the simulator",
    };
    let answer = match found.first {
        Some(first) => format!(
            "{figure} changed with {}: it is the first that differs from {}.",
            releases[first], releases[0]
        ),
        None => format!(
            "{figure} is the same under {} as under {}: what came and went between them is not seen.",
            releases.last().map_or("", String::as_str),
            releases[0]
        ),
    };
    page.paragraph(0, Ink::Strong, &answer);
    page.blank();
    let mut table = Table::new([format!("asked {whose}"), figure.to_string(), "25…75 %".into()]);
    for (i, spread) in &found.asked {
        table.row([releases[*i].clone(), number(spread), middle(spread)]);
    }
    page.table(0, &table);
    if let (Some(first), false) = (found.first, between.is_empty()) {
        page.blank();
        let text = format!(
            "between {} and {} the mirror has {}: risetime vm fetch gets one, and --bisect looks closer",
            releases[first - 1],
            releases[first],
            between.join(", ")
        );
        page.hanging("note: ", Ink::Dim, &text);
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_kernel::KernelRev;

    const PLAIN: Style = Style { width: 80, color: false, unicode: true };

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied().map(Some))
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
                spread(&[real, real, real + 2.0]),
                Spread::of([None, None, None]),
                spread(&[0.0]),
            ]),
            simulated: vec![spread(&[simulated; 3]), spread(&[55.0, 55.0, 56.0]), spread(&[0.0])],
        };
        History {
            workload: "rampup".into(),
            platform: "m1".into(),
            task: "rampup".into(),
            phases: 3,
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
            "rampup · m1 · 2 releases · kernel and simulator · medians of 3 start phases",
            "7.3.4+deb13-arm64 changed: energy_mj 3000 → 1500",
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
        let asked = vec![(0, spread(&[1.0])), (1, spread(&[2.0]))];
        let of = |first| {
            let found = Bisected { first, asked: asked.clone() };
            let between = ["6.12.107".to_string()];
            bisected("energy_mj", Side::Real, &names, &found, &between, &PLAIN)
        };
        let found = of(Some(1));
        assert!(found.starts_with("energy_mj changed with 7.3.4+deb13-arm64:"), "{found}");
        assert!(found.contains("the mirror has 6.12.107"), "{found}");
        assert!(of(None).starts_with("energy_mj is the same under 7.3.4+deb13-arm64"));
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
