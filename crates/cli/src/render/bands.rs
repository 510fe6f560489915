//! Settings of a plan as bands: one column a queue, now above then.

use std::collections::BTreeMap;

use ringwise_knob::{Address, Family, Of, Setting, Step, irq};
use ringwise_model::{CpuSet, Fact, Nic, Snapshot};
use ringwise_plan::Plan;

use super::text::{hang, len, pad, right};
use crate::style::Style;

/// Columns before the first queue.
const HEAD: usize = 26;

/// One knob on all queues of one device.
pub struct Band<'a> {
    pub title: &'static str,
    pub columns: Vec<Column>,
    pub steps: Vec<&'a Step>,
}

pub struct Column {
    /// `None`: a setting of the device, not of a queue.
    pub queue: Option<u32>,
    pub now: String,
    pub then: String,
}

/// Order and title of the band that a setting belongs to. Receive and transmit vectors of their own
/// get a band each.
fn key(a: &Address, split: bool) -> (u8, &'static str, Option<u32>) {
    match a {
        // Not of a queue, and not of the device: `rivals.rs` has a word of its own on it.
        Address::IrqbalanceRestart { .. } | Address::IrqbalanceBan { .. } => (12, "irqbalance", None),
        Address::Channels { .. } => (0, "channels", None),
        Address::Rings { .. } => (1, "rings", None),
        Address::Coalesce { .. } => (2, "moderation", None),
        Address::RssTable { .. } => (3, "RSS table", None),
        Address::Feature { .. } => (13, "feature", None),
        Address::Pause { .. } => (14, "pause frames", None),
        Address::QueueCoalesce { queue, .. } => (15, "moderation", Some(*queue)),
        Address::RssHash { .. } => (16, "RSS hash", None),
        Address::RssFields { .. } => (17, "RSS fields", None),
        Address::RssContext { context, .. } => (18, "RSS context", Some(*context)),
        Address::Ntuple { .. } => (19, "ntuple", None),
        Address::FlowRule { location, .. } => (20, "flow rule", Some(*location)),
        Address::NapiDevice { .. } => (21, "NAPI", None),
        Address::Napi { of: Of::Rx(q) | Of::Tx(q) | Of::Control(q), .. } => (22, "NAPI", Some(*q)),
        Address::NapiThread { of: Of::Rx(q) | Of::Tx(q) | Of::Control(q), .. } => (23, "NAPI thread CPU", Some(*q)),
        Address::Sysctl { .. } => (24, "sysctl", None),
        Address::CpuLatency { cpu } => (25, "resume latency", Some(cpu.0)),
        Address::IrqCpus { of: Of::Rx(q), .. } => {
            (4, if split { "rx interrupt CPU" } else { "interrupt CPU" }, Some(*q))
        }
        Address::IrqCpus { of: Of::Tx(q), .. } => {
            (5, if split { "tx interrupt CPU" } else { "interrupt CPU" }, Some(*q))
        }
        Address::IrqCpus { of: Of::Control(n), .. } => (6, "other interrupt", Some(*n)),
        Address::XpsCpus { queue, .. } => (7, "XPS CPUs", Some(*queue)),
        Address::XpsRxqs { queue, .. } => (8, "XPS rx queues", Some(*queue)),
        Address::RpsCpus { queue, .. } => (9, "RPS CPUs", Some(*queue)),
        Address::RpsFlowCnt { queue, .. } => (10, "RFS entries", Some(*queue)),
        Address::RfsEntries => (11, "RFS socket table", None),
    }
}

/// Bands of one device, or of the host (`None`), in writing order; those without a change are left out.
pub fn bands<'a>(plan: &'a Plan, s: Option<&Snapshot>, dev: Option<&str>) -> Vec<Band<'a>> {
    let of_dev: Vec<(&Setting, Address)> = plan
        .target
        .iter()
        .filter_map(|t| Some((t, t.address()?)))
        .filter(|(_, a)| a.dev() == dev && !of_rival(a))
        .collect();
    let has = |f: fn(&Of) -> bool| of_dev.iter().any(|(_, a)| matches!(a, Address::IrqCpus { of, .. } if f(of)));
    let split = has(|o| matches!(o, Of::Rx(_))) && has(|o| matches!(o, Of::Tx(_)));
    let steps: BTreeMap<Address, &Step> =
        plan.steps.iter().filter_map(|st| Some((st.setting.address()?, st))).filter(|(a, _)| a.dev() == dev).collect();
    let mut out: BTreeMap<u8, Band> = BTreeMap::new();
    for (setting, address) in &of_dev {
        let (order, title, queue) = key(address, split);
        let step = steps.get(address).copied();
        let band = out.entry(order).or_insert_with(|| Band { title, columns: Vec::new(), steps: Vec::new() });
        band.columns.push(Column {
            queue,
            now: step.map_or_else(|| then_text(setting, plan), |st| now_text(st, s)),
            then: then_text(setting, plan),
        });
        band.steps.extend(step);
    }
    let mut bands: Vec<Band> = out.into_values().filter(|b| !b.steps.is_empty()).collect();
    for b in &mut bands {
        b.columns.sort_by_key(|c| c.queue);
    }
    bands
}

fn of_rival(a: &Address) -> bool {
    a.family() == Family::Rivals
}

fn then_text(s: &Setting, plan: &Plan) -> String {
    let text = s.value_text();
    match s {
        Setting::IrqCpus { dev, of: Of::Rx(q) | Of::Tx(q), .. } => {
            let far = plan.layout.iter().find(|l| l.dev == *dev).and_then(|l| l.queues.iter().find(|p| p.queue == *q));
            if far.is_some_and(|p| p.far == Some(true)) { format!("{text}!") } else { text }
        }
        _ => text,
    }
}

/// What was found. For an interrupt the CPU where it goes rather than what was asked, unless
/// that alone would look like no change.
pub fn now_text(st: &Step, s: Option<&Snapshot>) -> String {
    let asked = match &st.from {
        Fact::Known(v) => v.value_text(),
        Fact::Absent => "-".into(),
        Fact::Unknown(_) => "unknown".into(),
    };
    let Setting::IrqCpus { dev, of, cpus } = &st.setting else {
        return asked;
    };
    let Some((s, nic)) = s.and_then(|s| Some((s, s.nic(dev)?))) else {
        return asked;
    };
    let Some(e) = irq::vector(nic, *of).and_then(|v| v.effective.known()).filter(|e| e.len() == 1 && *e != cpus) else {
        return asked;
    };
    format!("{e}{}", if is_far(s, nic, e) { "!" } else { "" })
}

fn is_far(s: &Snapshot, nic: &Nic, cpus: &CpuSet) -> bool {
    nic.node.known().is_some_and(|n| cpus.iter().any(|c| s.topology.node_of(c).is_some_and(|m| m != *n)))
}

impl Band<'_> {
    /// One line a queue, where the values are too wide for columns.
    fn rows(&self, marked: &str, style: &Style) -> String {
        let now = self.columns.iter().map(|c| len(&c.now)).max().unwrap_or(0);
        let mut out = format!("{marked}\n");
        for c in &self.columns {
            let queue = c.queue.map(|q| q.to_string()).unwrap_or_default();
            let head = format!("    queue {}  {} -> ", right(&queue, 3), right(&c.now, now));
            out.push_str(&hang(&head, &c.then, style.width));
        }
        out
    }

    /// `~ interrupt CPU   now  0  0  9!` and below it `then`, folded to the width.
    pub fn render(&self, head: bool, style: &Style) -> String {
        let label = |text: &str, i: usize| pad(if i == 0 { text } else { "" }, 20);
        let marked = format!("~ {}", self.title);
        if let [c] = self.columns.as_slice()
            && c.queue.is_none()
        {
            return hang(&format!("{}now  {}   then ", label(&marked, 0), c.now), &c.then, style.width);
        }
        let first = &self.columns[0];
        let uniform = self.columns.iter().all(|c| c.now == first.now && c.then == first.then);
        if uniform && self.columns.len() > 8 {
            let head = format!("{}all {} queues: now  {}   then ", label(&marked, 0), self.columns.len(), first.now);
            return hang(&head, &first.then, style.width);
        }
        let cell = self.columns.iter().flat_map(|c| [len(&c.now), len(&c.then)]).max().unwrap_or(0).max(4) + 2;
        let room = style.width.map_or(usize::MAX, |w| w.saturating_sub(HEAD));
        let per = [32, 16, 8, 4, 2].into_iter().find(|n| n * cell <= room).unwrap_or(1);
        if per < 4 && self.columns.len() > per && style.width.is_some() {
            return self.rows(&marked, style);
        }
        let per = if style.width.is_none() { self.columns.len() } else { per };
        let mut out = String::new();
        for (i, chunk) in self.columns.chunks(per).enumerate() {
            let row = |f: &dyn Fn(&Column) -> String| chunk.iter().map(|c| right(&f(c), cell)).collect::<String>();
            if head || i > 0 || self.columns.len() > per {
                let q = |c: &Column| c.queue.map(|q| q.to_string()).unwrap_or_default();
                out.push_str(&format!("{}{}\n", pad("  queue", HEAD), row(&q)));
            }
            out.push_str(&format!("{}now   {}\n", label(&marked, i), row(&|c| c.now.clone())));
            out.push_str(&format!("{}then  {}\n", label("", i), row(&|c| c.then.clone())));
        }
        out
    }
}
