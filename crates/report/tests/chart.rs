//! Pictures: whatever is in them, SVG is well formed and PNG can be read, and all of it is there.

use crate::common;

use crate::common::{DEFAULT, Kind, rampup};
use risetime_analysis::Distributions;
use risetime_analysis::verify::{Curve, Equivalence, Stretch};
use risetime_analysis::{Kind as Figure, Reading};
use risetime_kernel::units::{CpuId, KHz, Span};
use risetime_report::chart::{
    Axis, AxisKind, Chart, Colour, Mark, Panel, Series, Shape, Size, Theme, curves, heat,
};
use risetime_report::picture;

/// Every kind of axis and series, and what is hard to draw.
fn sample() -> Chart {
    let nan = f64::NAN;
    let mark = |x, y, label: &str| Mark { x, y, label: label.into(), ..Mark::default() };
    let strip = |title: &str, series| Panel {
        title: title.into(),
        x: Axis::new("time", "ms").range(0.0, 100.0),
        y: Axis::new("", "of 1024"),
        series,
        ..Panel::default()
    };
    let wave = (0..20_000).map(|i| (f64::from(i) / 100.0, f64::from(i % 7))).collect();
    let gaps = vec![
        (-5.0, 1.0),
        (nan, 2.0),
        (10.0, 3.0),
        (20.0, f64::INFINITY),
        (30.0, 1.0),
        (400.0, 2.0),
    ];
    let names =
        |n: usize| AxisKind::Names((0..n).map(|i| format!("a rather long name {i}")).collect());
    let ranged = Mark {
        x_range: Some((1.0, 2.0)),
        y_range: Some((0.1, f64::INFINITY)),
        ..mark(1.5, 0.5, "A")
    };
    let setting: Vec<_> =
        (1..6).map(|i| (f64::from(i), f64::from(i * i), Some((f64::from(i), 30.0)))).collect();
    let places = |n: u32| (0..n).map(|i| format!("{}", i * 100)).collect::<Vec<_>>();
    Chart {
        title: "A <title> & \"more\"\u{7} 語".into(),
        subtitle: "one\ntwo".into(),
        footer: "risetime run 'a b' --platform m1\nrisetime 0.1.0".into(),
        panels: vec![
            strip("dense", vec![Series::new("dense", Colour::Nth(0), Shape::Line(wave))]),
            strip("gaps", vec![Series::new("gaps", Colour::Nth(1), Shape::Step(gaps)).dashed()]),
            strip("empty", vec![Series::new("empty", Colour::Nth(7), Shape::Line(vec![]))]),
            Panel {
                title: "points".into(),
                x: Axis::new("", "ms").kind(AxisKind::Log),
                y: Axis::default().kind(AxisKind::Near),
                series: vec![Series::new(
                    "points",
                    Colour::Ink,
                    Shape::Points(vec![ranged, mark(0.0, 0.2, "B")]),
                )],
                keys: vec![("A".into(), "first".into()), ("B".into(), "second".into())],
                notes: vec!["a remark".into()],
                size: Size::Half,
                ..Panel::default()
            },
            Panel {
                title: "bars".into(),
                y: Axis::default().kind(names(2)),
                series: vec![Series::new(
                    "bars",
                    Colour::Nth(2),
                    Shape::Bars(vec![mark(-1.0, 0.0, "-1.0"), mark(5.0, 1.0, "5.0")]),
                )],
                size: Size::Half,
                ..Panel::default()
            },
            curves(
                "curves",
                Axis::new("rate limit", "µs"),
                Axis::new("lost", "ms"),
                &[("one setting", &setting)],
            ),
            heat(
                "heat",
                ("x", "", &places(4)),
                ("y", "", &places(2)),
                vec![vec![Some(1.0), None, Some(3.0), Some(nan)], vec![]],
            ),
        ],
    }
}

fn well_formed(svg: &str) {
    assert!(
        svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" ") && svg.ends_with("</svg>\n")
    );
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    for line in svg.lines().skip(1).take_while(|l| *l != "</svg>") {
        let tag = line.strip_prefix('<').expect("an element a line");
        assert!(!line.chars().any(char::is_control), "{line}");
        let Some((attributes, words)) = tag.strip_suffix("</text>").and_then(|t| t.split_once('>'))
        else {
            assert!(tag.ends_with("/>") && !tag[..tag.len() - 2].contains(['<', '>']), "{line}");
            continue;
        };
        assert!(
            attributes.starts_with("text ") && attributes.matches('"').count() % 2 == 0,
            "{line}"
        );
        assert!(!words.contains(['<', '>']), "{line}");
        let entity = |rest: &str| ["amp;", "lt;", "gt;"].iter().any(|e| rest.starts_with(e));
        assert!(words.split('&').skip(1).all(entity), "{line}");
    }
}

#[test]
fn svg_is_well_formed_small_and_says_everything() {
    for theme in [Theme::Light, Theme::Dark] {
        let svg = sample().svg(theme);
        well_formed(&svg);
        for words in [
            "A &lt;title&gt; &amp;",
            "two",
            "dense",
            "gaps",
            "empty",
            "points",
            "bars",
            "one setting",
            "a remark",
            "second",
            "time (ms)",
            "rate limit (µs)",
            "'a b'",
            "risetime 0.1.0",
            "5.0",
            "-1.0",
            "a rather long name 1",
        ] {
            assert!(svg.contains(words), "{words}");
        }
        assert!(svg.len() < 80_000, "20000 points are no more than can be seen: {}", svg.len());
        let sizes = svg.split("font-size=\"").skip(1).filter_map(|s| s.split('"').next());
        assert!(sizes.map(|s| s.parse::<f64>().expect("a number")).all(|s| s >= 11.0));
        assert!(svg.contains(" width=\"600\""));
    }
    assert_eq!(sample().svg(Theme::Dark), sample().svg(Theme::Dark));
    well_formed(&Chart::default().svg(Theme::Light));
}

#[test]
fn nothing_leaves_the_picture() {
    let svg = sample().svg(Theme::Light);
    let head = svg.lines().next().expect("a head");
    let height: f64 = head
        .split(" height=\"")
        .nth(1)
        .and_then(|s| s.split('"').next()?.parse().ok())
        .expect("its height");
    for path in svg.split("d=\"").skip(1).filter_map(|p| p.split('"').next()) {
        for point in path.trim_end_matches('Z').split(['M', 'L']).filter(|p| !p.is_empty()) {
            let (x, y) = point.split_once(' ').expect("x and y");
            let (x, y): (f64, f64) = (x.parse().expect("x"), y.parse().expect("y"));
            assert!(
                (0.0..=600.0).contains(&x) && (0.0..=height).contains(&y),
                "{point} of 600 {height}"
            );
        }
    }
}

#[test]
fn png_has_two_pixels_for_each_and_is_not_blank() {
    let mut all = Vec::new();
    for (theme, paper) in [(Theme::Light, [255, 255, 255]), (Theme::Dark, [0x14, 0x18, 0x1d])] {
        let bytes = sample().png(theme);
        assert!(bytes == sample().png(theme), "the same bytes");
        let map = tiny_skia::Pixmap::decode_png(&bytes).expect("a PNG");
        assert_eq!(map.width(), 1200);
        assert!(map.height() > 1200);
        let seen = map.pixels().iter().map(|p| [p.red(), p.green(), p.blue()]);
        let drawn = seen.clone().filter(|p| *p != paper).count();
        let whole = map.pixels().len();
        assert!(drawn > whole / 50 && drawn < whole / 2, "{drawn} of {whole}");
        // The first series, and text.
        let first = if theme == Theme::Light { [0x00, 0x72, 0xb2] } else { [0x56, 0xb4, 0xe9] };
        assert!(seen.clone().any(|p| p == first));
        all.push(bytes);
    }
    assert_ne!(all[0], all[1]);
    assert!(tiny_skia::Pixmap::decode_png(&Chart::default().png(Theme::Light)).is_ok());
}

#[test]
fn runs_are_drawn_over_each_other_with_what_their_latencies_are() {
    let (mut slow, mut line) = rampup(DEFAULT);
    let (mut fast, _) = rampup(Kind { busy_ms: 300, ..DEFAULT });
    for (run, name) in [(&mut slow, "slow"), (&mut fast, "fast & more")] {
        run.policy = name.into();
        run.latency.iter_mut().for_each(|l| l.activations = 40);
    }
    let steps = vec![(0.5, 0.25), (1.0, 0.9), (20.0, 1.0)];
    let tasks = slow.latency.first().map_or("rampup".into(), |l| l.tasks.clone());
    line.latency = vec![Distributions { tasks, took: steps.clone(), waited: steps }];
    let chart = picture::runs(&[(&slow, &line), (&fast, &line)]);
    let svg = chart.svg(Theme::Light);
    well_formed(&svg);
    for words in [
        ">slow<",
        ">fast &amp; more<",
        "util_avg",
        "Frequency",
        "Capacity",
        "Speed",
        "took at most (ms)",
        "Dashed",
    ] {
        assert!(svg.contains(words), "{words}");
    }
    for panel in &chart.panels[..4] {
        for series in &panel.series {
            let Shape::Step(points) = &series.shape else { panic!("{}: steps", panel.title) };
            let (most, least) = points
                .iter()
                .fold((f64::MIN, f64::MAX), |(most, least), p| (most.max(p.1), least.min(p.1)));
            assert!(
                points.len() > 1 && least >= 0.0 && most <= 4000.0 && most > 99.0,
                "{}: {most}",
                panel.title
            );
        }
    }
    // Jobs that the workload declares lead.
    line.jobs = vec![("frame".into(), vec![(8.0, 0.5), (21.0, 1.0)])];
    let chart = picture::runs(&[(&common::frames(), &line)]);
    let titles = [0, 1].map(|i| chart.panels[i].title.as_str());
    assert_eq!(titles, ["frame: from release to done", "util_avg of the task"]);
    assert!(chart.title.ends_with(": frame") && chart.subtitle.contains("frame: 119 jobs due"));
    // A run in which nothing ran, and none at all.
    let (mut none, _) = rampup(DEFAULT);
    none.tasks.clear();
    none.latency.clear();
    well_formed(
        &picture::runs(&[(&none, &risetime_analysis::Timeline::default())]).svg(Theme::Dark),
    );
    well_formed(&picture::runs(&[]).svg(Theme::Dark));
}

#[test]
fn causes_are_bars_the_largest_on_top_with_intervals_over_enough_phases() {
    let one = picture::causes(&[common::explanation(0)]);
    let many: Vec<_> = (0..8).map(common::explanation).collect();
    let many = picture::causes(&many);
    for (chart, intervals) in [(&one, 0), (&many, 1)] {
        well_formed(&chart.svg(Theme::Light));
        let Shape::Bars(bars) = &chart.panels[0].series[0].shape else { panic!("bars") };
        assert!(bars[1..].is_sorted_by(|a, b| a.x <= b.x), "after the unexplained: {bars:?}");
        assert_eq!(bars.iter().any(|b| b.x_range.is_some()), intervals == 1);
        assert_eq!(chart.subtitle.contains("95 %"), intervals == 1, "{}", chart.subtitle);
    }
}

#[test]
fn both_sides_of_a_verification_are_drawn() {
    let ms = Span::from_ms;
    let side = |mhz: u64| Curve {
        util: vec![(ms(0), 10), (ms(50), mhz)],
        ran: vec![Stretch {
            from: ms(0),
            to: ms(90),
            ran: ms(90),
            domain: CpuId(4),
            freq: KHz(mhz * 1000),
        }],
        length: ms(100),
        ..Curve::default()
    };
    let svg =
        picture::verified("rampup on m1", "Linux 7.3.4", &side(600), &side(900)).svg(Theme::Light);
    well_formed(&svg);
    for words in [">Linux 7.3.4<", ">simulated<", ">rampup on m1<"] {
        assert!(svg.contains(words), "{words}");
    }
    let reading =
        |value: f64| vec![Reading { kind: Figure::Energy, of: String::new(), value, floor: 1.0 }];
    let runs: Vec<_> = (0..8)
        .map(|k| (reading(100.0 + f64::from(k)), reading(131.0 + f64::from(k % 3))))
        .collect();
    let chart = picture::spread("Linux 7.3.4", &[Equivalence::of("m1/ramp".into(), &runs)]);
    well_formed(&chart.svg(Theme::Dark));
    let panel = &chart.panels[0];
    let far = panel.series.iter().find(|s| s.name == "different").map(|s| s.shape.clone());
    let Some(Shape::Points(marks)) = far else { panic!("there is none") };
    assert!(marks.len() == 1 && marks[0].x == 5.0, "at the edge: {marks:?}");
}
