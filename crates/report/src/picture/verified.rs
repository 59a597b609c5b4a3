//! Real kernel and simulator over each other.

use crate::chart::{Axis, AxisKind, Chart, Colour, Mark, Panel, Series, Shape, Size};
use crate::words::digits3;
use risetime_analysis::verify::{Curve, Equivalence, Figure, Verdict};

const GAP: (f64, f64) = (f64::NAN, f64::NAN);

/// The first task of one run on both sides: util, and frequency where it ran.
pub fn verified(experiment: &str, reference: &str, was: &Curve, simulated: &Curve) -> Chart {
    let sides = [(reference, Colour::Ink, was), ("simulated", Colour::Nth(0), simulated)];
    let end = was.length.max(simulated.length).0 as f64 / 1e6;
    let panel = |title: &str, unit: &str, curve: &dyn Fn(&Curve) -> Vec<(f64, f64)>| Panel {
        title: title.into(),
        x: Axis::new("", "ms").range(0.0, end.max(1.0)),
        y: Axis::new("", unit),
        series: sides
            .map(|(name, colour, c)| Series::new(name, colour, Shape::Step(curve(c))))
            .to_vec(),
        ..Panel::default()
    };
    let ms = |span: risetime_kernel::units::Span| span.0 as f64 / 1e6;
    let ran = |c: &Curve, value: &dyn Fn(usize) -> f64| -> Vec<(f64, f64)> {
        let stretch = |(i, s): (usize, &risetime_analysis::verify::Stretch)| {
            [(ms(s.from), value(i)), (ms(s.to), value(i)), GAP]
        };
        c.ran.iter().enumerate().flat_map(stretch).collect()
    };
    Chart {
        title: experiment.into(),
        subtitle: "The workload's first task; time counts from its start.".into(),
        panels: vec![
            panel("util_avg", "of 1024", &|c| {
                let points = c.util.iter().map(|(at, util)| (ms(*at), *util as f64));
                points.chain(c.util.last().map(|last| (ms(c.length), last.1 as f64))).collect()
            }),
            panel("Frequency where it ran", "MHz", &|c| {
                ran(c, &|i| c.ran[i].freq.0 as f64 / 1000.0)
            }),
            panel("Frequency domain where it ran", "its first CPU", &|c| {
                ran(c, &|i| f64::from(c.ran[i].domain.0))
            }),
        ],
        ..Chart::default()
    }
}

/// Figures over start phases: how far the simulator's mean is from the kernel's, in margins.
pub fn spread(reference: &str, all: &[Equivalence]) -> Chart {
    Chart {
        title: format!("Simulator and {reference}"),
        subtitle: "Difference of each figure's means, with 90 % interval, in units of what nobody notices (5 % of the \
                   kernel's mean, or the figure's floor). Beside each name: kernel, simulated."
            .into(),
        panels: all.iter().map(equivalence).collect(),
        ..Chart::default()
    }
}

/// Further away than this is at the edge.
const FAR: f64 = 5.0;

fn equivalence(e: &Equivalence) -> Panel {
    let drawn: Vec<&Figure> = e.figures.iter().filter(|f| f.pairs > 0).rev().collect();
    let name = |f: &&Figure| {
        let of = if f.of.is_empty() { String::new() } else { format!(" {}", f.of) };
        format!(
            "{}{of}: {}, {}",
            f.kind.as_str(),
            digits3(f.reference.mean),
            digits3(f.candidate.mean)
        )
    };
    let place = |value: f64, f: &Figure| (value / f.margin).clamp(-FAR, FAR);
    let verdicts = [
        ("equivalent", Verdict::Equivalent, Colour::Nth(0)),
        ("undecided", Verdict::Undecided, Colour::Ink),
        ("different", Verdict::Different, Colour::Nth(1)),
    ];
    let series = verdicts.map(|(words, verdict, colour)| {
        let of = drawn.iter().enumerate().filter(|(_, f)| f.verdict == verdict);
        let point = |(i, f): (usize, &&Figure)| Mark {
            x: place(f.difference, f),
            y: i as f64,
            x_range: f.interval.map(|(low, high)| (place(low, f), place(high, f))),
            ..Mark::default()
        };
        Series::new(words, colour, Shape::Points(of.map(point).collect()))
    });
    let n = drawn.len().max(1) as f64;
    let edge =
        |x: f64| Series::new("", Colour::Ink, Shape::Line(vec![(x, -0.5), (x, n - 0.5)])).dashed();
    Panel {
        title: format!("{}, {} start phases", e.name, e.phases),
        x: Axis::new("simulated less kernel", "margins").range(-FAR, FAR),
        y: Axis::default().kind(AxisKind::Names(drawn.iter().map(name).collect())),
        series: series.into_iter().chain([edge(-1.0), edge(1.0)]).collect(),
        size: Size::Whole,
        ..Panel::default()
    }
}
