//! A strict parser of the pages and figures: errors that a browser tolerates are faults here. It returns tables as
//! their cells, figures as the values that they draw.

/// An element with its contents.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    Text(String),
    Element(Element),
}

impl Element {
    /// Empty if the attribute does not exist.
    pub(crate) fn get(&self, attribute: &str) -> &str {
        self.attributes.iter().find(|(k, _)| k == attribute).map_or("", |(_, v)| v)
    }

    fn number(&self, attribute: &str) -> f64 {
        self.get(attribute).parse().unwrap_or_else(|e| panic!("{attribute} of {self:?}: {e}"))
    }

    /// Everything with this name below it, in the order of the page.
    pub(crate) fn all(&self, name: &str) -> Vec<&Self> {
        let mut out = Vec::new();
        for e in self.elements() {
            if e.name == name {
                out.push(e);
            }
            out.extend(e.all(name));
        }
        out
    }

    pub(crate) fn elements(&self) -> impl Iterator<Item = &Self> {
        self.children.iter().filter_map(|n| if let Node::Element(e) = n { Some(e) } else { None })
    }

    pub(crate) fn text(&self) -> String {
        let one = |n: &Node| match n {
            Node::Text(t) => t.clone(),
            Node::Element(e) => e.text(),
        };
        self.children.iter().map(one).collect()
    }
}

/// Tags balance, attributes are quoted and once each, only entities of XML, and nothing is loaded or runs. Returns an
/// element that holds the whole text.
pub(crate) fn parse(name: &str, text: &str) -> Element {
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{name}: a control character");
    assert!(!text.contains("url(") && !text.contains("@import"), "{name}: loads something");
    let mut open = vec![Element::default()];
    let mut rest = text.strip_prefix("<!DOCTYPE html>\n").unwrap_or(text);
    while let Some((before, after)) = rest.split_once('<') {
        let within = open.last_mut().unwrap();
        within.children.push(Node::Text(entities(name, before)));
        let (tag, after) = after.split_once('>').unwrap_or_else(|| panic!("{name}: a tag does not end"));
        rest = after;
        let done = if let Some(closes) = tag.strip_prefix('/') {
            assert_eq!(within.name, closes, "{name}: closes what was opened last");
            open.pop()
        } else {
            let (inner, empty) = tag.strip_suffix('/').map_or((tag, false), |i| (i, true));
            open.push(opened(name, inner));
            if empty { open.pop() } else { None }
        };
        if let Some(e) = done {
            let within = open.last_mut().unwrap_or_else(|| panic!("{name}: closes more than it opens"));
            within.children.push(Node::Element(e));
        }
    }
    assert!(open.len() == 1 && rest.trim().is_empty(), "{name}: left {:?}, {rest:?}", open.last().map(|e| &e.name));
    open.remove(0)
}

fn opened(name: &str, tag: &str) -> Element {
    let (element, mut left) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(!element.is_empty() && element.bytes().all(|b| b.is_ascii_alphanumeric()), "{name}: element {element:?}");
    assert!(!["script", "link", "img", "iframe", "object"].contains(&element), "{name}: {element}");
    let mut out = Element { name: element.into(), ..Element::default() };
    while !left.is_empty() {
        let (key, value) = left.split_once("=\"").unwrap_or_else(|| panic!("{name}: {tag}"));
        let (value, more) = value.split_once('"').unwrap_or_else(|| panic!("{name}: {tag}"));
        let key = key.trim();
        assert!(out.attributes.iter().all(|(k, _)| k != key) && !key.starts_with("on"), "{name}: {key} in {tag}");
        assert!(!["src", "href"].contains(&key), "{name}: {tag}");
        out.attributes.push((key.into(), entities(name, value)));
        left = more.trim_start();
    }
    out
}

fn entities(name: &str, text: &str) -> String {
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let known = [("amp;", '&'), ("lt;", '<'), ("gt;", '>'), ("quot;", '"'), ("apos;", '\'')];
        let (rest, c) = known
            .iter()
            .find_map(|(k, c)| Some((part.strip_prefix(k)?, *c)))
            .unwrap_or_else(|| panic!("{name}: &{}", part.chars().take(9).collect::<String>()));
        out.push(c);
        out.push_str(rest);
    }
    out
}

/// The table below a heading.
pub(crate) struct TextTable {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl TextTable {
    pub(crate) fn below(page: &Element, heading: &str) -> Self {
        let body = page.all("body")[0];
        let mut after = body.elements().skip_while(|e| e.name != "h2" || e.text() != heading).skip(1);
        let table = after.next().unwrap_or_else(|| panic!("no heading {heading:?}")).all("table");
        let cells = |row: &&Element, kind| row.all(kind).iter().map(|c| c.text()).collect::<Vec<_>>();
        let mut rows = table[0].all("tr").into_iter();
        let head = cells(&rows.next().unwrap(), "th");
        let rows: Vec<Vec<String>> = rows.map(|r| cells(&r, "td")).collect();
        assert!(rows.iter().all(|r| r.len() == head.len()), "{heading}: a row is not as long as the heading");
        Self { head, rows }
    }

    /// The only row that begins with these cells.
    pub(crate) fn row(&self, begins: &[&str]) -> &[String] {
        let found: Vec<&Vec<String>> = self.rows.iter().filter(|r| r.iter().zip(begins).all(|(a, b)| a == b)).collect();
        assert_eq!(found.len(), 1, "rows that begin with {begins:?}");
        found[0]
    }

    pub(crate) fn cell<'a>(&self, row: &'a [String], column: &str) -> &'a str {
        let i = self.head.iter().position(|h| h == column);
        &row[i.unwrap_or_else(|| panic!("no column {column:?} in {:?}", self.head))]
    }
}

/// The number that a cell begins with, in the unit without a prefix.
pub(crate) fn number(cell: &str) -> f64 {
    let (digits, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let factor = match unit {
        "kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        _ => 1.0,
    };
    digits.replace(',', "").parse::<f64>().unwrap_or_else(|e| panic!("{cell:?}: {e}")) * factor
}

/// Half the height of a text's letters: `y` of a text lies so far below its middle.
const MIDDLE: f64 = 11.5 * 0.35;
/// Coordinates are written with one digit.
const PIXEL: f64 = 0.11;

/// An axis, by the words at its ticks.
#[derive(Debug, Clone)]
struct Scale {
    /// Pixel and value.
    ticks: Vec<(f64, f64)>,
    log: bool,
}

impl Scale {
    fn new(mut ticks: Vec<(f64, f64)>) -> Self {
        ticks.sort_by(|a, b| a.1.total_cmp(&b.1));
        assert!(ticks.len() > 1, "an axis without ticks");
        let step = |i: usize| ticks[i + 1].1 - ticks[i].1;
        let even = (0..ticks.len() - 1).all(|i| (step(i) - step(0)).abs() < step(0) * 1e-6);
        Self { log: !even, ticks }
    }

    fn value(&self, pixel: f64) -> f64 {
        let ((a, low), (b, high)) = (self.ticks[0], self.ticks[self.ticks.len() - 1]);
        let share = (pixel - a) / (b - a);
        if self.log { (low.ln() + share * (high.ln() - low.ln())).exp() } else { low + share * (high - low) }
    }

    /// The uncertainty of a value that is drawn at this pixel.
    fn slack(&self, pixel: f64) -> f64 {
        (self.value(pixel + PIXEL) - self.value(pixel - PIXEL)).abs()
    }
}

/// A value that a figure draws, and how exactly it can be read.
#[derive(Debug, Clone)]
pub(crate) struct Drawn {
    /// The word at the axis below.
    pub(crate) at: String,
    pub(crate) value: f64,
    pub(crate) slack: f64,
}

/// A chart: lines or bars by the words of the legend.
pub(crate) struct Chart<'a> {
    svg: &'a Element,
    left: Scale,
    right: Option<Scale>,
    /// Pixel and word.
    below: Vec<(f64, String)>,
}

/// Where the plot ends at the left and the right, as in `chart.rs`.
const EDGES: (f64, f64) = (62.0, 578.0);

impl<'a> Chart<'a> {
    pub(crate) fn of(svg: &'a Element) -> Self {
        let texts = svg.all("text");
        let x = |t: &Element| t.number("x");
        let unit = |end: &str| texts.iter().find(|t| t.number("font-size") < 14.0 && t.get("x") == end).unwrap().text();
        let factor = |unit: String| match unit.chars().next() {
            Some('k') => 1e3,
            Some('M') => 1e6,
            Some('G') => 1e9,
            _ => 1.0,
        };
        let floor = texts.iter().filter(|t| x(t) == EDGES.0 - 8.0).map(|t| t.number("y")).fold(0.0, f64::max);
        let scale = |at: f64, by: f64| -> Vec<(f64, f64)> {
            let labels = texts.iter().filter(|t| x(t) == at && t.number("y") <= floor);
            labels.map(|t| (t.number("y") - MIDDLE, t.text().parse::<f64>().unwrap() * by)).collect()
        };
        let right = scale(EDGES.1 + 8.0, 1.0);
        let below = texts.iter().filter(|t| t.get("text-anchor") == "middle" && t.get("fill") == "#667085");
        Self {
            svg,
            left: Scale::new(scale(EDGES.0 - 8.0, factor(unit("12")))),
            right: (!right.is_empty()).then(|| Scale::new(right)),
            below: below.map(|t| (x(t), t.text())).collect(),
        }
    }

    fn floor(&self) -> f64 {
        self.left.ticks[0].0
    }

    /// What the legend puts before this word: stroke and dashes of a line, or fill of a bar.
    fn key(&self, name: &str) -> (&'a str, &'a str, bool) {
        let all: Vec<&Element> = self.svg.elements().collect();
        let legend =
            all.iter().position(|e| e.name == "text" && e.number("y") > self.floor() + 45.0 && e.text() == name);
        let legend = legend.unwrap_or_else(|| panic!("no {name:?} in the legend"));
        let sign = all[..legend].iter().rev().find(|e| e.name == "rect" || e.get("stroke-width") == "1.8").unwrap();
        match sign.name.as_str() {
            "rect" => (sign.get("fill"), "", true),
            _ => (sign.get("stroke"), sign.get("stroke-dasharray"), false),
        }
    }

    /// The horizontal line across the plot.
    pub(crate) fn mark(&self) -> Option<Drawn> {
        let lines = self.svg.elements().filter(|e| e.name == "path" && e.get("stroke-dasharray") == "5 3").map(path);
        let y = lines.filter(|p| p.len() == 2 && p[0].1 == p[1].1 && p[1].0 == EDGES.1).map(|p| p[0].1).next()?;
        Some(Drawn { at: String::new(), value: self.left.value(y), slack: self.left.slack(y) })
    }

    /// The values of a series, by ascending pixel of the axis below.
    pub(crate) fn series(&self, name: &str) -> Vec<Drawn> {
        let (colour, dash, bar) = self.key(name);
        let right = dash == "5 3.5";
        let mut points: Vec<(f64, f64)> = Vec::new();
        for e in self.svg.elements() {
            if bar && e.name == "rect" && e.get("fill") == colour && e.number("y") <= self.floor() + 1.0 {
                points.push((e.number("x") + e.number("width") / 2.0, e.number("y")));
            }
            let is_line = e.name == "path" && e.get("stroke-width") == "1.8" && e.get("stroke") == colour;
            if !bar && is_line && e.get("stroke-dasharray") == dash {
                points.extend(path(e).into_iter().filter(|p| p.1 <= self.floor() + 1.0));
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let scale = if right { self.right.as_ref().unwrap() } else { &self.left };
        let drawn = |(x, y): &(f64, f64)| {
            let near = self.below.iter().min_by(|a, b| (a.0 - x).abs().total_cmp(&(b.0 - x).abs())).unwrap();
            assert!(bar || (near.0 - x).abs() < 0.2, "{name}: a point at {x}, where no tick is");
            Drawn { at: near.1.clone(), value: scale.value(*y), slack: scale.slack(*y) }
        };
        points.iter().map(drawn).collect()
    }
}

fn path(e: &Element) -> Vec<(f64, f64)> {
    let words: Vec<f64> = e.get("d").split([' ', 'M', 'L']).filter_map(|w| w.parse().ok()).collect();
    words.chunks(2).map(|p| (p[0], p[1])).collect()
}

/// The rows of a figure of changes: label, words, and the value at which its sign lies.
pub(crate) fn changes(svg: &Element) -> Vec<(String, String, Drawn)> {
    let texts = svg.all("text");
    let ticks = texts.iter().filter(|t| t.get("text-anchor") == "middle" && t.get("fill") == "#667085");
    let scale = Scale::new(ticks.map(|t| (t.number("x"), t.text().parse().unwrap())).collect());
    let labels = texts.iter().filter(|t| t.get("x") == "16");
    let row = |t: &&&Element| {
        let (y, here) = (t.number("y"), |e: &Element| (e.number("y") - t.number("y")).abs() < 0.2);
        let words = texts.iter().find(|w| here(w) && w.get("x") != "16").unwrap().text();
        let x = signs(svg).into_iter().find(|s| (s.1 - (y - MIDDLE)).abs() < 0.3);
        let x = x.unwrap_or_else(|| panic!("no sign in the row {:?}", t.text())).0;
        let drawn = Drawn { at: t.text(), value: scale.value(x), slack: scale.slack(x) };
        (t.text(), words, drawn)
    };
    labels.map(|t| row(&t)).collect()
}

/// Middles of the signs for better, worse, equivalent and inconclusive.
fn signs(svg: &Element) -> Vec<(f64, f64)> {
    let one = |e: &Element| match e.name.as_str() {
        "circle" if e.get("r") == "4.8" => Some((e.number("cx"), e.number("cy"))),
        "rect" if e.get("width") == "8" && e.get("height") == "8" => Some((e.number("x") + 4.0, e.number("y") + 4.0)),
        // The arrow of an interval without end has three points.
        "path" if e.get("stroke-width") == "1.6" && path(e).len() == 5 => Some((path(e)[0].0, path(e)[1].1)),
        _ => None,
    };
    svg.elements().filter_map(one).collect()
}
