//! A page of metrics as text: Prometheus 0.0.4 and OpenMetrics 1.0. This module does no I/O.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::table::{self, MetricFamily, MetricKind};

/// The text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text format 0.0.4 of Prometheus.
    Prometheus,
    /// OpenMetrics 1.0.0; ends with `# EOF`.
    OpenMetrics,
}

impl Form {
    /// Value of the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The number of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// An integer; exact even if a float could not represent it.
    Int(u64),
    /// Seconds and other fractions.
    Num(f64),
    /// Hundredths.
    Hundredths(u64),
}

impl Value {
    fn text(self) -> String {
        match self {
            Self::Int(n) => n.to_string(),
            Self::Hundredths(n) => format!("{}.{:02}", n / 100, n % 100),
            // Debug always prints the decimal point, and no thousands separators.
            Self::Num(n) => format!("{n:?}"),
        }
    }
}

struct Sample {
    /// Series of one group are written all together or not at all, so that no sum silently covers only a part.
    group: String,
    labels: String,
    value: Value,
}

/// The series to write.
#[derive(Default)]
pub struct Page {
    families: BTreeMap<&'static str, Vec<Sample>>,
}

/// `{device="eth1",queue="0"}`, without labels whose value is unknown.
pub(crate) fn labels(list: &[(&str, &str)]) -> String {
    let mut out = String::new();
    for (name, value) in list.iter().filter(|l| !l.1.is_empty()) {
        out.push(if out.is_empty() { '{' } else { ',' });
        let _ = write!(out, "{name}=\"");
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    if !out.is_empty() {
        out.push('}');
    }
    out
}

impl Page {
    /// Adds one series. Labels without a value are unknown and omitted. The first label is its group.
    pub fn add(&mut self, family: &MetricFamily, list: &[(&str, &str)], value: Value) {
        let group = list.first().map(|l| l.1.to_string()).unwrap_or_default();
        self.put(family, group, labels(list), value);
    }

    pub(crate) fn put(&mut self, family: &MetricFamily, group: String, labels: String, value: Value) {
        self.families.entry(family.name).or_default().push(Sample { group, labels, value });
    }

    /// The text, with at most `limit` series. Metrics are kept in the order of the table. If a metric does not fit,
    /// only the devices (or CPUs) that fit completely are written, with the number of missing series.
    pub fn render(mut self, form: Form, limit: usize) -> String {
        self.families.remove(table::LEFT_OUT.name);
        // Each metric with missing series needs one more line.
        let mut room = limit.saturating_sub(table::ALL.len());
        let mut missing = Vec::new();
        for family in table::ALL {
            let Some(samples) = self.families.get_mut(family.name) else { continue };
            let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
            for s in samples.iter() {
                *sizes.entry(s.group.clone()).or_default() += 1;
            }
            // In the order of the page.
            let mut fits: BTreeMap<String, bool> = BTreeMap::new();
            let before = samples.len();
            samples.retain(|s| {
                *fits.entry(s.group.clone()).or_insert_with(|| {
                    let size = sizes[&s.group];
                    let fit = size <= room;
                    room -= if fit { size } else { 0 };
                    fit
                })
            });
            if samples.len() < before {
                missing.push((family.name, (before - samples.len()) as u64));
            }
        }
        for (name, n) in missing {
            self.add(&table::LEFT_OUT, &[("metric", name)], Value::Int(n));
        }
        self.text(form)
    }

    fn text(&self, form: Form) -> String {
        let mut out = String::new();
        for f in table::ALL {
            let Some(samples) = self.families.get(f.name).filter(|s| !s.is_empty()) else { continue };
            let (name, kind) = match (form, f.kind) {
                (Form::OpenMetrics, MetricKind::Info) => (f.base(), "info"),
                (Form::Prometheus, MetricKind::Info) => (f.name, "gauge"),
                (Form::OpenMetrics, MetricKind::Counter) => (f.base(), "counter"),
                (Form::Prometheus, MetricKind::Counter) => (f.name, "counter"),
                (_, MetricKind::Gauge) => (f.name, "gauge"),
            };
            let _ = writeln!(out, "# HELP {name} {}", f.help);
            let _ = writeln!(out, "# TYPE {name} {kind}");
            if form == Form::OpenMetrics && !f.unit.is_empty() {
                let _ = writeln!(out, "# UNIT {name} {}", f.unit);
            }
            for s in samples {
                let _ = writeln!(out, "{}{} {}", f.name, s.labels, s.value.text());
            }
        }
        if form == Form::OpenMetrics {
            out.push_str("# EOF\n");
        }
        out
    }
}
