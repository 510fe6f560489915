//! With `plan -v`: the number of the interrupt behind each step that sets one, and its CPUs and masks before and after.

use ringwise_knob::{Address, Family, Setting, Step, irq};
use ringwise_model::{CpuSet, Fact, Snapshot};
use ringwise_text::{hang, mask, pad};

/// The interrupts that these steps of a device set, in writing order. `None`: no step sets an interrupt, or the plan is shown
/// without the snapshot that has the numbers.
pub(super) fn text<'a>(
    dev: &str,
    steps: impl Iterator<Item = &'a Step>,
    s: Option<&Snapshot>,
    w: Option<usize>,
) -> Option<String> {
    let nic = s?.nic(dev)?;
    let mut may_change = false;
    let mut lines: Vec<(String, String)> = Vec::new();
    for step in steps.filter(|step| step.setting.dev() == Some(dev)) {
        let Some(address) = step.setting.address() else { continue };
        may_change |= address.invalidates_of(Some(nic)).contains(&Family::Irq);
        let (Setting::IrqCpus { cpus: then, .. }, Address::IrqCpus { of, .. }) = (&step.setting, &address) else {
            continue;
        };
        let number = match irq::vector(nic, *of) {
            Some(v) if may_change => format!("present number {}", v.irq),
            Some(v) => format!("interrupt {}", v.irq),
            None if may_change => "no interrupt yet".to_string(),
            None => "interrupt unknown".to_string(),
        };
        let before = match &step.from {
            Fact::Known(Setting::IrqCpus { cpus, .. }) => with_mask(cpus),
            Fact::Known(_) | Fact::Absent => "not set".to_string(),
            Fact::Unknown(why) => format!("unknown ({})", why.why),
        };
        lines.push((of.to_string(), format!("{number}, {before} -> {}", with_mask(then))));
    }
    if lines.is_empty() {
        return None;
    }
    let title = if may_change { "interrupts (an earlier step may give them other numbers):" } else { "interrupts:" };
    let mut out = hang("  ", title, w);
    let longest = lines.iter().map(|(queue, _)| queue.len()).max().unwrap_or(0);
    for (queue, change) in lines {
        out.push_str(&hang(&format!("    {dev} {}  ", pad(&queue, longest)), &change, w));
    }
    Some(out)
}

fn with_mask(cpus: &CpuSet) -> String {
    let word = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{word} {cpus} (mask {})", mask(cpus))
}
