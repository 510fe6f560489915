//! Options files of Seastar's `perftune.py`.
//!
//! Modes of its `NetPerfTuner`: `mq` spreads the interrupts over all CPUs of `cpu_mask`; `sq` sends all of them to the
//! first CPU; `sq_split` to the hardware threads of the first core. `irq_cpu_mask` names the CPUs instead of a mode.

use ringwise_kfmt::cpumask;
use ringwise_model::{CpuSet, Snapshot};

use super::words::{Group, part};
use super::yaml::{self, Node};
use super::{ForeignFile, Imported, ImportedValue, devices};

/// Options of the network, and those of disks that a file may have alone (`get_options_file_contents` of perftune.py).
const KEYS: [&str; 9] = ["tune", "nic", "mode", "irq_cpu_mask", "cpu_mask", "num_rx_queues", "arfs", "dir", "dev"];

/// Reads one file.
pub fn perftune(file: &ForeignFile, s: &Snapshot, out: &mut Imported) {
    if file.is_too_large(out) {
        return;
    }
    let root = match yaml::parse(&file.text) {
        Ok(root) => root,
        Err(e) => return out.refuse(&file.at(e.line), format!("ringwise does not read {}", e.why)),
    };
    if let Some((_, first)) = root.entries().first().filter(|_| !KEYS.iter().any(|k| root.get(k).is_some())) {
        let why = "it has no option of perftune.py; expected a file like /etc/scylla.d/perftune.yaml (`mode`, `irq_cpu_mask`, `nic`)";
        return out.refuse(&file.at(first.line), why);
    }
    let net = root.get("tune").is_none_or(|t| t.items().iter().any(|i| i.text() == Some("net")));
    for (key, value) in root.entries() {
        let by = file.at(value.line);
        let shown = format!("{key}: {}", shown(value));
        match key.as_str() {
            "tune" | "nic" => {}
            _ if !net => out.leave(&by, shown, "the file does not tune the network (tune)"),
            "mode" | "irq_cpu_mask" | "cpu_mask" => {}
            "num_rx_queues" => {
                let read = part(Group::Channels, "combined", value.text().unwrap_or_default());
                match read {
                    Ok(part) => {
                        let nics = nics(&root, s);
                        nics.iter().for_each(|n| out.add(Some(n), part.clone(), &by));
                    }
                    Err(why) => out.leave(&by, shown, why),
                }
            }
            "arfs" => out.leave(&by, shown, "a goal decides about accelerated RFS"),
            _ => out.leave(&by, shown, "it is no setting of network interfaces"),
        }
    }
    if let Some(nic) = root.get("nic") {
        for i in nic.items() {
            let name = i.text().unwrap_or_default();
            if devices::by_name(s, name).is_empty() {
                out.leave(&file.at(i.line), format!("nic: {name}"), "no such interface on this host");
            }
        }
    }
    if net {
        cpus(file, &root, s, out);
    }
}

/// Interfaces to tune, `eth0` by default. Bonds stand for their members.
fn nics(root: &Node, s: &Snapshot) -> Vec<String> {
    let names: Vec<&str> =
        root.get("nic").map_or_else(|| vec!["eth0"], |n| n.items().iter().filter_map(|i| i.text()).collect());
    names.iter().flat_map(|name| devices::by_name(s, name)).map(|n| n.name().to_string()).collect()
}

fn shown(n: &Node) -> String {
    n.items().iter().filter_map(|i| i.text()).collect::<Vec<_>>().join(", ")
}

/// The CPUs of interrupts: the mask, or those of the mode.
fn cpus(file: &ForeignFile, root: &Node, s: &Snapshot, out: &mut Imported) {
    let mut mask = |key: &str| {
        let node = root.get(key)?;
        match cpumask::parse(node.text().unwrap_or_default()) {
            Ok(cpus) => Some((cpus.intersection(&s.topology.online), file.at(node.line))),
            Err(e) => {
                out.leave(&file.at(node.line), format!("{key}: {}", shown(node)), e.to_string());
                None
            }
        }
    };
    let (irqs, all) = (mask("irq_cpu_mask"), mask("cpu_mask"));
    let mode = root.get("mode").map(|n| (n.text().unwrap_or_default(), file.at(n.line)));
    let usable = all.as_ref().map_or(&s.topology.online, |(cpus, _)| cpus);
    let Some(first) = usable.first() else { return };
    let (cpus, by) = match (irqs, mode, all.clone()) {
        (Some((cpus, by)), mode, all) => {
            if let Some((mode, at)) = mode {
                out.leave(&at, format!("mode: {mode}"), "irq_cpu_mask takes precedence");
            }
            if let Some((cpus, at)) = all {
                let why = "ringwise needs only the CPUs of interrupts, which irq_cpu_mask names";
                out.leave(&at, format!("cpu_mask: CPUs {cpus}"), why);
            }
            (cpus, by)
        }
        (None, Some(("sq", by)), _) => (CpuSet::one(first), by),
        (None, Some(("sq_split", by)), _) => (s.topology.siblings_of(first).intersection(usable), by),
        (None, Some(("mq", by)), None) => {
            return out.leave(&by, "mode: mq", "not needed: a goal spreads the interrupts over all local CPUs");
        }
        (None, Some(("mq", _)) | None, Some((cpus, by))) => (cpus, by),
        (None, Some((mode, by)), _) => {
            return out.leave(&by, format!("mode: {mode}"), "ringwise does not know this mode of perftune.py");
        }
        (None, None, None) => return,
    };
    if cpus.is_empty() {
        return out.leave(&by, "the CPUs of interrupts", "none of them is online");
    }
    if cpus != s.topology.online {
        out.add(None, ImportedValue::Cpus(cpus), &by);
    }
    let others: Vec<&str> = {
        let tuned = nics(root, s);
        devices::all(s).map(|n| n.name()).filter(|n| !tuned.iter().any(|t| t == n)).collect()
    };
    if !others.is_empty() {
        let what = format!("the CPUs of interrupts are for {} alone", nics(root, s).join(", "));
        let why = format!("`cpus` of ringwise is for all interfaces, also {}", others.join(", "));
        out.leave(&by, what, why);
    }
}
