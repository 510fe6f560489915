//! The settings of a plan as bands: one column for each queue, with the present value above the planned one.

use std::collections::BTreeMap;

use ringwise_knob::partial::named_parts;
use ringwise_knob::{Address, Family, Setting, Step, VectorName, irq};
use ringwise_model::order::Order;
use ringwise_model::{CpuSet, Fact, Nic, Snapshot};
use ringwise_plan::DevLayout;

use super::plan_index::PlanPart;
use ringwise_text::Style;
use ringwise_text::{hang, len, numbers, pad, right};

/// Width of the heading before the first queue.
const HEAD: usize = 6;

/// More queues than this are never all listed, if some of them do not change.
const MANY: usize = 32;

/// One kind of setting on all queues of one device.
pub struct Band<'a> {
    /// Name of the setting. If the two directions have their own vectors, it includes the direction.
    pub title: String,
    /// What a column is, for example `queue`.
    noun: &'static str,
    /// In the order of queue numbers; a setting of the device is one column without a number.
    pub columns: Vec<Column>,
    /// The steps that the band shows, in writing order.
    pub steps: Vec<&'a Step>,
}

/// One queue of a band.
pub struct Column {
    /// `None`: the setting belongs to the device.
    pub queue: Option<u32>,
    /// The value before the step. For an interrupt, the CPUs that it may be delivered to.
    pub now: String,
    /// The CPU that takes the interrupt, where it may be delivered to several.
    pub on: Option<String>,
    /// The value that the step writes.
    pub then: String,
    /// A step changes it.
    changes: bool,
}

/// Order and title of the band for a setting. If receive and transmit queues have their own vectors, each direction
/// gets a band.
fn key(a: &Address, split: bool) -> (u8, String, Option<u32>) {
    let plain = |order: u8, title: &str, of: Option<u32>| (order, title.to_string(), of);
    match a {
        Address::Feature { name, .. } => plain(0, name, None),
        Address::Channels { .. } => plain(1, "channels", None),
        Address::Rings { .. } => plain(2, "rings", None),
        Address::Pause { .. } => plain(3, "pause frames", None),
        Address::Coalesce { .. } => plain(4, "moderation", None),
        Address::QueueCoalesce { queue, .. } => plain(5, "moderation", Some(*queue)),
        Address::RssHash { .. } => plain(6, "RSS hash", None),
        Address::RssFields { flow, .. } => plain(7, &format!("RSS fields {flow}"), None),
        Address::RssTable { .. } => plain(8, "RSS table", None),
        Address::RssContext { context, .. } => plain(9, "RSS context", Some(*context)),
        Address::Ntuple { .. } => plain(10, "rx-ntuple-filter", None),
        Address::FlowRule { location, .. } => plain(11, "flow rule", Some(*location)),
        Address::IrqCpus { of: VectorName::Rx(q), .. } => {
            plain(12, if split { "rx interrupt CPU" } else { "interrupt CPU" }, Some(*q))
        }
        Address::IrqCpus { of: VectorName::Tx(q), .. } => {
            plain(13, if split { "tx interrupt CPU" } else { "interrupt CPU" }, Some(*q))
        }
        Address::IrqCpus { of: VectorName::Control(n), .. } => plain(14, "other interrupt", Some(*n)),
        Address::XpsCpus { queue, .. } => plain(15, "XPS CPUs", Some(*queue)),
        Address::XpsRxqs { queue, .. } => plain(16, "XPS rx queues", Some(*queue)),
        Address::RpsCpus { queue, .. } => plain(17, "RPS CPUs", Some(*queue)),
        Address::RpsFlowCnt { queue, .. } => plain(18, "RFS entries", Some(*queue)),
        Address::RfsEntries => plain(19, "RFS socket table", None),
        Address::NapiDevice { .. } => plain(20, "NAPI", None),
        Address::Napi { of: VectorName::Rx(q) | VectorName::Tx(q) | VectorName::Control(q), .. } => {
            plain(21, "NAPI", Some(*q))
        }
        Address::NapiThread { of: VectorName::Rx(q) | VectorName::Tx(q) | VectorName::Control(q), .. } => {
            plain(22, "NAPI thread CPU", Some(*q))
        }
        Address::Sysctl { name } => plain(23, name, None),
        Address::CpuLatency { cpu } => plain(24, "resume latency", Some(cpu.0)),
        // These are settings of the host, although they name a device; the part of the host shows them.
        Address::IrqbalanceRestart { .. } | Address::IrqbalanceBan { .. } => plain(25, "irqbalance", None),
    }
}

/// What a column of the band is.
fn noun(a: &Address) -> &'static str {
    match a {
        Address::RssContext { .. } => "context",
        Address::FlowRule { .. } => "location",
        Address::CpuLatency { .. } => "CPU",
        _ => "queue",
    }
}

/// The bands of one device, or of the host, in writing order. Bands without changes are left out.
pub fn bands<'a>(part: &PlanPart<'a>, s: Option<&Snapshot>) -> Vec<Band<'a>> {
    let settings = || part.target.iter().filter(|(_, a)| !is_irqbalance(a));
    let has = |f: fn(&VectorName) -> bool| settings().any(|(_, a)| matches!(a, Address::IrqCpus { of, .. } if f(of)));
    let split = has(|o| matches!(o, VectorName::Rx(_))) && has(|o| matches!(o, VectorName::Tx(_)));
    let mut out: BTreeMap<(u8, String), Band> = BTreeMap::new();
    for (setting, address) in settings() {
        let (order, title, queue) = key(address, split);
        let step = part.steps.get(address).copied();
        let band = out.entry((order, title.clone()));
        let band = band.or_insert_with(|| Band { title, noun: noun(address), columns: Vec::new(), steps: Vec::new() });
        let then = then_text(setting, part.layout, s);
        let (now, on) = step.map_or_else(|| (then.clone(), None), |st| now_and_on(st, s));
        band.columns.push(Column { queue, now, on, then, changes: step.is_some() });
        band.steps.extend(step);
    }
    let mut bands: Vec<Band> = out.into_values().filter(|b| !b.steps.is_empty()).collect();
    for b in &mut bands {
        b.columns.order_by_key(|c| c.queue);
    }
    bands
}

fn is_irqbalance(a: &Address) -> bool {
    a.family() == Family::Rivals
}

fn then_text(setting: &Setting, layout: Option<&DevLayout>, s: Option<&Snapshot>) -> String {
    let text = setting.value_text();
    match setting {
        Setting::IrqCpus { of: VectorName::Rx(q) | VectorName::Tx(q), .. } => {
            let far = layout.and_then(|l| l.queues.iter().find(|p| p.queue == *q));
            if far.is_some_and(|p| p.far == Some(true)) { format!("{text}!") } else { text }
        }
        Setting::RpsCpus { dev, cpus, .. } => text + rps_mark(s, dev, cpus),
        _ => text,
    }
}

/// `!` if RPS passes packets to a CPU on a remote node (rule Q07).
fn rps_mark(s: Option<&Snapshot>, dev: &str, cpus: &CpuSet) -> &'static str {
    let far = s.and_then(|s| Some(is_far(s, s.nic(dev)?, cpus)));
    if far == Some(true) { "!" } else { "" }
}

/// The present value; for an interrupt with the CPU that takes it: `0-5, on 2`.
pub fn now_text(st: &Step, s: Option<&Snapshot>) -> String {
    let (now, on) = now_and_on(st, s);
    with_on(&now, on.as_deref())
}

fn with_on(now: &str, on: Option<&str>) -> String {
    on.map_or_else(|| now.to_string(), |on| format!("{now}, on {on}"))
}

/// The present value, and for an interrupt that may be delivered to several CPUs the one that takes it.
fn now_and_on(st: &Step, s: Option<&Snapshot>) -> (String, Option<String>) {
    let asked = match &st.from {
        Fact::Known(v) => named_parts(v, &st.setting).value_text_beside(&st.setting),
        Fact::Absent => "-".into(),
        Fact::Unknown(_) => "unknown".into(),
    };
    if let Fact::Known(Setting::RpsCpus { dev, cpus, .. }) = &st.from {
        let marked = asked + rps_mark(s, dev, cpus);
        return (marked, None);
    }
    let Setting::IrqCpus { dev, of, .. } = &st.setting else {
        return (asked, None);
    };
    let Some((s, nic)) = s.and_then(|s| Some((s, s.nic(dev)?))) else {
        return (asked, None);
    };
    let allowed = match &st.from {
        Fact::Known(Setting::IrqCpus { cpus, .. }) => Some(cpus),
        _ => None,
    };
    let marked = |cpus: &CpuSet| format!("{cpus}{}", if cpus.len() == 1 && is_far(s, nic, cpus) { "!" } else { "" });
    // An interrupt with one CPU is there, or moves there when it is raised next.
    if let Some(one) = allowed.filter(|a| a.len() == 1) {
        return (marked(one), None);
    }
    let effective = irq::vector(nic, *of).and_then(|v| v.effective.known()).filter(|e| !e.is_empty());
    let Some(e) = effective else {
        return (asked, allowed.map(|_| "?".into()));
    };
    let on = marked(e);
    if allowed == Some(e) { (on, None) } else { (asked, Some(on)) }
}

fn is_far(s: &Snapshot, nic: &Nic, cpus: &CpuSet) -> bool {
    nic.node.known().is_some_and(|n| cpus.iter().any(|c| s.topology.node_of(c).is_some_and(|m| m != *n)))
}

/// Whether the value would be folded into a narrow strip at the right, or exceed the width.
fn too_long(head: &str, then: &str, style: &Style) -> bool {
    style.width.is_some_and(|w| len(head) + len(then).min(20) > w)
}

/// One line for each group of queues with the same change.
fn groups(marked: &str, noun: &str, alike: &[(Vec<u32>, &Column)], style: &Style) -> String {
    let label = |queues: &Vec<u32>| {
        let list = numbers(queues.iter().copied());
        format!("{noun}{} {list}", if queues.len() == 1 { "" } else { "s" })
    };
    let wide = alike.iter().map(|(q, _)| len(&label(q))).max().unwrap_or(0);
    let mut out = format!("{marked}\n");
    for (queues, c) in alike {
        let head = format!("    {}  ", pad(&label(queues), wide));
        let now = c.now_and_on();
        let both = format!("{now} -> {}", c.then);
        if style.width.is_some_and(|w| len(&head) + len(&both) > w) {
            out.push_str(&hang(&head, &now, style.width));
            out.push_str(&hang(&format!("{}-> ", " ".repeat(len(&head) - 3)), &c.then, style.width));
        } else {
            out.push_str(&format!("{head}{both}\n"));
        }
    }
    out
}

impl Column {
    fn now_and_on(&self) -> String {
        with_on(&self.now, self.on.as_deref())
    }
}

impl Band<'_> {
    /// The queues with a change, and a line about the others.
    fn changed(&self, style: &Style) -> (Vec<&Column>, String) {
        let (changed, others): (Vec<&Column>, Vec<&Column>) = self.columns.iter().partition(|c| c.changes);
        let rest = numbers(others.iter().filter_map(|c| c.queue));
        let label = format!("    {}{} {rest}  ", self.noun, if others.len() == 1 { "" } else { "s" });
        let line = if others.is_empty() { String::new() } else { hang(&label, "no change", style.width) };
        (changed, line)
    }

    /// One line for each queue, for values that are too wide for columns.
    fn rows(&self, marked: &str, style: &Style) -> String {
        let (changed, others) = self.changed(style);
        self.rows_of(&changed, marked, style) + &others
    }

    fn rows_of(&self, columns: &[&Column], marked: &str, style: &Style) -> String {
        let mut alike: Vec<(Vec<u32>, &Column)> = Vec::new();
        for c in columns {
            match alike.iter_mut().find(|(_, o)| (&o.now, &o.on, &o.then) == (&c.now, &c.on, &c.then)) {
                Some((queues, _)) => queues.extend(c.queue),
                None => alike.push((c.queue.into_iter().collect(), c)),
            }
        }
        if alike.len() < columns.len() {
            return groups(marked, self.noun, &alike, style);
        }
        let now = columns.iter().map(|c| len(&c.now_and_on())).max().unwrap_or(0);
        let mut out = format!("{marked}\n");
        for c in columns {
            let queue = c.queue.map(|q| q.to_string()).unwrap_or_default();
            let (noun, text) = (self.noun, c.now_and_on());
            let head = format!("    {noun} {}  {} -> ", right(&queue, 3), right(&text, now));
            if too_long(&head, &c.then, style) {
                out.push_str(&hang(&format!("    {noun} {}  ", right(&queue, 3)), &text, style.width));
                out.push_str(&hang("            -> ", &c.then, style.width));
                continue;
            }
            out.push_str(&hang(&head, &c.then, style.width));
        }
        out
    }

    /// What the columns are, and their numbers. A band with the same ones as the band above it needs no heading of its own.
    pub fn head(&self) -> Option<(&'static str, Vec<u32>)> {
        let numbers: Vec<u32> = self.columns.iter().filter_map(|c| c.queue).collect();
        (!numbers.is_empty()).then_some((self.noun, numbers))
    }

    /// `~ interrupt CPU   now  0-7  0-7  9!` and below it `on`, the CPUs that take the interrupts, and `then`; folded to
    /// the width.
    pub fn render(&self, head: bool, style: &Style) -> String {
        let marked = format!("~ {}", self.title);
        let wide = (len(&marked) + 2).max(20);
        let label = |text: &str, i: usize| pad(if i == 0 { text } else { "" }, wide);
        if let [c] = self.columns.as_slice()
            && c.queue.is_none()
        {
            let head = format!("{}now  {}   then ", label(&marked, 0), c.now);
            if too_long(&head, &c.then, style) {
                let now = hang(&format!("{}now   ", label(&marked, 0)), &c.now, style.width);
                return now + &hang(&format!("{}then  ", label("", 1)), &c.then, style.width);
            }
            return hang(&head, &c.then, style.width);
        }
        if self.noun != "queue" && style.width.is_some() {
            return self.rows(&marked, style);
        }
        let first = &self.columns[0];
        let uniform = self.columns.iter().all(|c| (&c.now, &c.on, &c.then) == (&first.now, &first.on, &first.then));
        if uniform && self.columns.len() > 8 {
            let head =
                format!("{}all {} queues: now  {}   then ", label(&marked, 0), self.columns.len(), first.now_and_on());
            if too_long(&head, &first.then, style) {
                return self.rows(&marked, style);
            }
            return hang(&head, &first.then, style.width);
        }
        let cell = self
            .columns
            .iter()
            .flat_map(|c| [len(&c.now), c.on.as_deref().map_or(0, len), len(&c.then)])
            .max()
            .unwrap_or(0)
            .max(4)
            + 2;
        let room = style.width.map_or(usize::MAX, |w| w.saturating_sub(wide + HEAD));
        let per = [32, 16, 8, 4, 2].into_iter().find(|n| n * cell <= room).unwrap_or(1);
        if style.width.is_some() && ((per < 4 && self.columns.len() > per) || cell > room) {
            return self.rows(&marked, style);
        }
        let per = if style.width.is_none() { self.columns.len() } else { per };
        // A table of several rows, or of very many columns, has only what changes: among many queues, the one that differs is hard to find.
        let folds = self.columns.len() > per.min(MANY);
        let (columns, others) = match folds {
            true => self.changed(style),
            false => (self.columns.iter().collect(), String::new()),
        };
        let mut out = String::new();
        for (i, chunk) in columns.chunks(per).enumerate() {
            let row = |f: &dyn Fn(&Column) -> String| chunk.iter().map(|c| right(&f(c), cell)).collect::<String>();
            if head || i > 0 || folds {
                let q = |c: &Column| c.queue.map(|q| q.to_string()).unwrap_or_default();
                out.push_str(&format!("{}{}\n", pad(&format!("  {}", self.noun), wide + HEAD), row(&q)));
            }
            out.push_str(&format!("{}now   {}\n", label(&marked, i), row(&|c| c.now.clone())));
            if chunk.iter().any(|c| c.on.is_some()) {
                let on = |c: &Column| c.on.clone().unwrap_or_else(|| c.now.clone());
                out.push_str(&format!("{}on    {}\n", label("", i), row(&on)));
            }
            out.push_str(&format!("{}then  {}\n", label("", i), row(&|c| c.then.clone())));
        }
        out + &others
    }
}

#[cfg(test)]
mod tests {
    use ringwise_testkit::sim::build;

    use super::*;

    #[test]
    fn rps_cpus_on_a_remote_node_are_marked() {
        let s = build::host(8, 2).igb("eth0", 1, 4).done();
        let rps = |cpus: &str| Setting::RpsCpus { dev: "eth0".into(), queue: 0, cpus: cpus.parse().unwrap() };
        let shown = |cpus: &str| then_text(&rps(cpus), None, Some(&s));
        let home = s.topology.node(*s.nics[0].node.known().unwrap()).unwrap().cpus.clone();
        assert_eq!(shown(&home.to_string()), home.to_string());
        let away = s.topology.online.difference(&home);
        assert_eq!(shown(&away.to_string()), format!("{away}!"));
        assert_eq!(shown("0-7"), "0-7!", "some of them");
        assert_eq!(then_text(&rps("0-7"), None, None), "0-7", "unknown");
    }
}
