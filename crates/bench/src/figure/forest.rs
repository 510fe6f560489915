//! All changes with their intervals, one below the other, with a line at 0 and the band that counts as equivalent.

use ringwise_draw::axis;
use ringwise_draw::canvas::{Area, Canvas, FAINT, Font, INK, Ink, PAGE, at, width};
use ringwise_draw::chart::WIDTH;
use ringwise_draw::plot::{BETTER, GRID, SMALL, WORSE, document, heading, whisker};

use crate::result::Verdict;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// `64 bytes, bulk`.
    pub label: String,
    /// `+12.3 % [8.1 … 16.4]`.
    pub words: String,
    /// Per cent. None: nothing is drawn, only the words are shown.
    pub change: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub equivalent: f64,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Forest {
    pub title: String,
    /// A heading and its rows.
    pub parts: Vec<(String, Vec<Row>)>,
}

/// Width of the plot, and of one in a figure that needs the width of two.
const PLOT: f64 = 300.0;
const WIDE_PLOT: f64 = 620.0;
/// A change that is this many times larger than the next one would compress all others.
const APART: f64 = 4.0;
const STEP: f64 = 20.0;
const BAND: &str = "#eef1f5";

fn colour(v: Verdict) -> &'static str {
    match v {
        Verdict::Better => BETTER,
        Verdict::Worse => WORSE,
        Verdict::Equivalent | Verdict::Inconclusive => "#5b6472",
    }
}

/// The figure and its width. None: no change is known.
pub(super) fn draw(f: &Forest) -> Option<(String, f64)> {
    let rows: Vec<&Row> = f.parts.iter().flat_map(|p| &p.1).collect();
    let band = rows.iter().map(|r| r.equivalent).fold(0.0, f64::max);
    // An interval that is much wider than all changes would compress the others, so it ends in an arrow.
    let most = (largest(&rows, band)? * 1.6).max(band * 2.0).max(1.0);
    let ends = |r: &&Row| [r.low, r.high].into_iter().flatten().map(|v| v.clamp(-most, most)).collect::<Vec<_>>();
    let all: Vec<f64> = rows
        .iter()
        .flat_map(ends)
        .chain([-band, band])
        .chain(rows.iter().filter_map(|r| r.change).map(|v| v.clamp(-most, most)))
        .collect();
    let ticks = axis::linear(all.iter().copied().fold(0.0, f64::min), all.iter().copied().fold(0.0, f64::max), 6);
    let label = |r: &&Row| width(&r.label, SMALL);
    let left = 24.0 + rows.iter().map(label).fold(60.0, f64::max) * 0.95;
    let words = rows.iter().map(|r| width(&r.words, SMALL)).fold(0.0, f64::max);
    let plot = if left + PLOT + 14.0 + words > WIDTH + 60.0 { WIDE_PLOT } else { PLOT };
    let right = left + plot + 14.0;
    let x = |v: f64| left + plot * ticks.share(v).clamp(0.0, 1.0);
    let mut c = Canvas::default();
    let top = heading(&mut c, &f.title, right + 120.0) + 6.0;
    let heads = f.parts.iter().filter(|p| !p.0.is_empty()).count();
    let bottom = top + (rows.len() + heads) as f64 * STEP + 4.0;
    for r in [rows.first()?] {
        if f.parts.iter().flat_map(|p| &p.1).all(|o| o.equivalent == r.equivalent) && r.equivalent > 0.0 {
            let a = Area { x: x(-band), y: top, w: x(band) - x(-band), h: bottom - top };
            c.rect(a, 0.0, &Ink { fill: BAND, stroke: "none", width: 0.0, dash: "" }, "");
        }
    }
    for (v, word) in ticks.at.iter().zip(ticks.words(false).0) {
        let ink = if *v == 0.0 { Ink::line(INK, 1.2, "") } else { Ink::line(GRID, 1.0, "") };
        c.line(&[at(x(*v), top), at(x(*v), bottom)], &ink);
        c.text(at(x(*v), bottom + 11.0), &word, &Font::left(SMALL, FAINT).middle());
    }
    c.text(at(left + plot / 2.0, bottom + 28.0), "change, %", &Font::left(SMALL, INK).middle());
    let mut y = top + STEP / 2.0;
    for (head, rows) in &f.parts {
        if !head.is_empty() {
            c.text(at(12.0, y), head, &Font::left(SMALL, INK).bold());
            y += STEP;
        }
        for r in rows {
            c.text(at(16.0, y), &r.label, &Font::left(SMALL, INK));
            let font = match r.verdict {
                Verdict::Better | Verdict::Worse => Font::left(SMALL, colour(r.verdict)),
                Verdict::Equivalent | Verdict::Inconclusive => Font::left(SMALL, INK),
            };
            c.text(at(right, y), &r.words, &font);
            row(&mut c, r, y, &x, &ticks);
            y += STEP;
        }
    }
    key(&mut c, bottom + 50.0, band);
    let wide = c.right;
    Some((document(c, &f.title, 0.0), wide))
}

/// The largest change that determines the axis. A single one that is far above all others does not, unless the others
/// are equivalent to no change.
fn largest(rows: &[&Row], band: f64) -> Option<f64> {
    let mut all: Vec<f64> = rows.iter().filter_map(|r| r.change).map(f64::abs).collect();
    all.sort_by(|a, b| b.total_cmp(a));
    match all.as_slice() {
        [first, second, ..] if *second > band && first / second > APART => Some(*second),
        all => all.first().copied(),
    }
}

fn row(c: &mut Canvas, r: &Row, y: f64, x: &dyn Fn(f64) -> f64, ticks: &axis::Ticks) {
    let Some(change) = r.change else { return };
    let stroke = colour(r.verdict);
    if change < ticks.low || change > ticks.high {
        // The change itself is beyond the axis: an arrow at the end, with the sign before it.
        let way = if change > 0.0 { 1.0 } else { -1.0 };
        let tip = x(change);
        c.line(&[at(tip - way * 26.0, y), at(tip, y)], &Ink::line(stroke, 1.6, ""));
        c.line(&[at(tip - way * 7.0, y - 4.0), at(tip, y), at(tip - way * 7.0, y + 4.0)], &Ink::line(stroke, 1.6, ""));
        sign(c, tip - way * 16.0, y, r.verdict);
        return;
    }
    if let (Some(low), Some(high)) = (r.low, r.high) {
        whisker(c, at(x(low), y), at(x(high), y), stroke);
        for (v, out, way) in [(low, low < ticks.low, 1.0), (high, high > ticks.high, -1.0)] {
            if out {
                let (tip, back) = (x(v) - way * 5.0, x(v) + way * 2.0);
                c.line(&[at(back, y - 4.0), at(tip, y), at(back, y + 4.0)], &Ink::line(stroke, 1.6, ""));
            }
        }
    }
    sign(c, x(change), y, r.verdict);
}

/// Filled if a difference was found, hollow if not.
fn sign(c: &mut Canvas, x: f64, y: f64, v: Verdict) {
    let ink = |fill| Ink { fill, stroke: colour(v), width: 1.6, dash: "" };
    let shape = |s: &[(f64, f64)]| s.iter().map(|(a, b)| at(x + a, y + b)).collect::<Vec<_>>();
    match v {
        Verdict::Better => c.dot(at(x, y), 4.8, colour(v)),
        Verdict::Worse => {
            c.line(&shape(&[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0), (0.0, -5.0)]), &ink(colour(v)));
        }
        Verdict::Equivalent => {
            c.rect(Area { x: x - 4.0, y: y - 4.0, w: 8.0, h: 8.0 }, 0.0, &ink(colour(v)), "");
        }
        Verdict::Inconclusive => {
            c.dot(at(x, y), 4.8, colour(v));
            c.dot(at(x, y), 3.2, PAGE);
        }
    }
}

fn key(c: &mut Canvas, y: f64, band: f64) {
    let mut x = 18.0;
    for (v, word) in [
        (Verdict::Better, "better"),
        (Verdict::Worse, "worse"),
        (Verdict::Equivalent, "equivalent"),
        (Verdict::Inconclusive, "inconclusive"),
    ] {
        sign(c, x, y, v);
        c.text(at(x + 12.0, y), word, &Font::left(SMALL, INK));
        x += 36.0 + width(word, SMALL);
    }
    if band > 0.0 {
        c.rect(Area { x: x - 6.0, y: y - 6.0, w: 16.0, h: 12.0 }, 0.0, &Ink::filled(BAND, GRID), "");
        c.text(at(x + 18.0, y), &format!("equivalent within ±{band} %"), &Font::left(SMALL, INK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(change: Option<f64>, low: f64, high: f64, verdict: Verdict) -> Row {
        let (low, high) = (Some(low), Some(high));
        Row { label: "64 bytes".into(), words: "words".into(), change, low, high, equivalent: 2.0, verdict }
    }

    fn forest(rows: Vec<Row>) -> Option<String> {
        draw(&Forest { title: "t".into(), parts: vec![(String::new(), rows)] }).map(|d| d.0)
    }

    #[test]
    fn what_cannot_be_drawn_keeps_its_words() {
        let none = Row { change: None, low: None, high: None, ..row(None, 0.0, 0.0, Verdict::Inconclusive) };
        assert_eq!(forest(vec![none.clone()]), None);
        let svg = forest(vec![row(Some(5.0), 4.0, 6.0, Verdict::Better), none]).unwrap();
        assert_eq!(svg.matches(">words<").count(), 2);
        // The better one is in its row and in the key; inconclusive is only in the key, as two rings.
        assert_eq!((svg.matches("r=\"4.8\" fill=\"#117733\"").count(), svg.matches("r=\"3.2\"").count()), (2, 1));
        assert!(svg.contains("equivalent within ±2 %"));
    }

    #[test]
    fn one_change_far_above_the_others_does_not_compress_them() {
        let usual = |c| row(Some(c), c - 1.0, c + 1.0, Verdict::Better);
        let far = row(Some(4000.0), 3900.0, 4100.0, Verdict::Better);
        let svg = forest(vec![usual(10.0), usual(12.0), far.clone()]).unwrap();
        assert!(svg.contains(">10<") && !svg.contains(">4000<") && !svg.contains(">1000<"), "{svg}");
        // It is the only result where the others are equivalent to no change.
        let none = row(Some(0.1), -1.0, 1.0, Verdict::Equivalent);
        let svg = forest(vec![none.clone(), none, far]).unwrap();
        assert!(svg.contains(">4000<"), "{svg}");
    }

    #[test]
    fn an_interval_without_end_ends_in_an_arrow() {
        let arrows =
            |svg: &str| svg.lines().filter(|l| l.starts_with("<path") && l.contains("stroke-width=\"1.6\"")).count();
        let whole = forest(vec![row(Some(5.0), 4.0, 6.0, Verdict::Better)]).unwrap();
        let wide = forest(vec![row(Some(5.0), -4000.0, 6000.0, Verdict::Inconclusive)]).unwrap();
        // The key has the sign of worse.
        assert_eq!((arrows(&whole), arrows(&wide)), (1, 3));
        assert!(!wide.contains("4000"), "the axis stays with the changes");
    }
}
