//! `/proc/interrupts`, `/proc/irq` and `/sys/kernel/irq` (kernel/irq/proc.c, kernel/irq/irqdesc.c).

use std::fmt::Write as _;

use super::desc::{Arch, Host};
use super::nic::Vector;
use super::{Cpus, Tree, text};

/// One line of `/proc/interrupts`.
struct Line {
    irq: u32,
    chip: String,
    hwirq: u32,
    trigger: &'static str,
    name: String,
    asked: Vec<u32>,
    effective: u32,
    node: i32,
    hint: bool,
    count: u64,
}

pub(super) fn write(tree: &mut Tree, host: &Host, cpus: &Cpus, vectors: &[Vector]) -> Result<(), String> {
    let mut lines = fixed(host, cpus);
    for o in &host.other {
        for i in 0..o.count {
            let cpu = cpus.online[i as usize % cpus.online.len()];
            let name = o.name.replace("{n}", &i.to_string());
            lines.push(msi(host, &o.address, i, o.first_irq + i, &name, vec![cpu], cpu, 0, false, 5000));
        }
    }
    for v in vectors {
        lines.push(msi(
            host,
            &v.address,
            v.index,
            v.irq,
            &v.name,
            v.asked.clone(),
            v.effective,
            v.node,
            v.hint,
            v.count,
        ));
    }
    lines.sort_by_key(|l| l.irq);
    if let Some(twice) = lines.windows(2).find(|w| w[0].irq == w[1].irq) {
        return Err(format!("interrupt {} is described twice", twice[0].irq));
    }
    tree.file("/proc/interrupts", table(host, cpus, &lines));
    tree.line("/proc/irq/default_smp_affinity", text::mask(&cpus.online, cpus.bits));
    for l in &lines {
        files(tree, cpus, l);
    }
    Ok(())
}

fn fixed(host: &Host, cpus: &Cpus) -> Vec<Line> {
    let ir = if host.remapping { "IR-" } else { "" };
    let rows: &[(u32, &str, u32, &'static str, &str, u64)] = match host.arch {
        Arch::X86_64 => &[
            (0, "IO-APIC", 2, "edge", "timer", 34),
            (8, "IO-APIC", 8, "edge", "rtc0", 1),
            (9, "IO-APIC", 9, "fasteoi", "acpi", 0),
        ],
        Arch::Aarch64 => &[(9, "GICv3", 25, "Level", "vgic", 0), (11, "GICv3", 30, "Level", "arch_timer", 8_123_456)],
    };
    rows.iter()
        .map(|(irq, chip, hwirq, trigger, name, count)| Line {
            irq: *irq,
            chip: if chip.starts_with("IO") { format!("{ir}{chip}") } else { (*chip).to_string() },
            hwirq: *hwirq,
            trigger,
            name: (*name).to_string(),
            asked: cpus.online.clone(),
            effective: cpus.online[0],
            node: -1,
            hint: false,
            count: *count,
        })
        .collect()
}

#[allow(clippy::too_many_arguments, reason = "the members of a line")]
fn msi(
    host: &Host,
    address: &str,
    index: u32,
    irq: u32,
    name: &str,
    asked: Vec<u32>,
    effective: u32,
    node: i32,
    hint: bool,
    count: u64,
) -> Line {
    // Since 6.2 each function has its own chip and counts from 0; earlier kernels have one number space for all
    // functions: bus, device and function above 11 bits of index (pci_msi_domain_calc_hwirq).
    let number = |s: &str| u32::from_str_radix(s, 16).unwrap_or(0);
    let parts: Vec<u32> = address.split([':', '.']).map(number).collect();
    let devfn = parts.get(1..4).map_or(0, |p| p[0] << 8 | p[1] << 3 | p[2]);
    let own = host.since(6, 2);
    let chip = match (host.arch, own) {
        (Arch::X86_64, true) => format!("{}PCI-MSIX-{address}", if host.remapping { "IR-" } else { "" }),
        (Arch::X86_64, false) => format!("{}PCI-MSI", if host.remapping { "IR-" } else { "" }),
        (Arch::Aarch64, true) => format!("ITS-PCI-MSIX-{address}"),
        (Arch::Aarch64, false) => "ITS-MSI".to_string(),
    };
    Line {
        irq,
        chip,
        hwirq: if own { index } else { devfn << 11 | index },
        trigger: if host.arch == Arch::X86_64 { "edge" } else { "Edge" },
        name: name.to_string(),
        asked,
        effective,
        node,
        hint,
        count,
    }
}

fn table(host: &Host, cpus: &Cpus, lines: &[Line]) -> String {
    let width = lines.iter().map(|l| l.irq.to_string().len()).max().unwrap_or(3).max(3);
    let mut out = String::new();
    let _ = write!(out, "{:1$}", "", width + 8);
    for c in &cpus.online {
        let _ = write!(out, "CPU{c:<8}");
    }
    out.push('\n');
    // A vector that no driver has requested has no line, only its directories.
    for l in lines.iter().filter(|l| !l.name.is_empty()) {
        let _ = write!(out, "{:width$}: ", l.irq);
        for c in &cpus.online {
            // A timer counts on every CPU; an interrupt that was moved has left a few where it began.
            let n = match l.name.as_str() {
                "arch_timer" => l.count + u64::from(*c),
                _ if *c == l.effective => l.count,
                _ if *c == cpus.online[0] && l.count > 1000 => u64::from(l.irq % 7),
                _ => 0,
            };
            let _ = write!(out, "{n:10} ");
        }
        let _ = write!(out, " {:>8}", l.chip);
        match host.arch {
            Arch::X86_64 => {
                let _ = write!(out, " {:width$}-{:<8}", l.hwirq, l.trigger);
            }
            Arch::Aarch64 => {
                let _ = write!(out, " {:width$} {:<8}", l.hwirq, l.trigger);
            }
        }
        let _ = writeln!(out, "  {}", l.name);
    }
    let rows: &[(&str, &str, u64)] = match host.arch {
        Arch::X86_64 => &[
            ("NMI", "Non-maskable interrupts", 12),
            ("LOC", "Local timer interrupts", 4_000_000),
            ("RES", "Rescheduling interrupts", 40_000),
            ("CAL", "Function call interrupts", 90_000),
            ("TLB", "TLB shootdowns", 1_000),
        ],
        Arch::Aarch64 => &[("IPI0", "Rescheduling interrupts", 40_000), ("IPI1", "Function call interrupts", 90_000)],
    };
    for (label, words, count) in rows {
        let _ = write!(out, "{label:>width$}: ");
        for c in &cpus.online {
            let _ = write!(out, "{:10} ", count + u64::from(*c) * 13);
        }
        let space = if host.arch == Arch::X86_64 { "  " } else { "      " };
        let _ = writeln!(out, "{space}{words}");
    }
    let _ = writeln!(out, "{:>width$}: {:10}", if host.arch == Arch::X86_64 { "ERR" } else { "Err" }, 0);
    out
}

fn files(tree: &mut Tree, cpus: &Cpus, l: &Line) {
    let dir = format!("/proc/irq/{}", l.irq);
    tree.line(format!("{dir}/smp_affinity"), text::mask(&l.asked, cpus.bits));
    tree.line(format!("{dir}/smp_affinity_list"), text::list(&l.asked));
    tree.line(format!("{dir}/effective_affinity"), text::mask(&[l.effective], cpus.bits));
    tree.line(format!("{dir}/effective_affinity_list"), l.effective);
    let hint = if l.hint { vec![l.effective] } else { Vec::new() };
    tree.line(format!("{dir}/affinity_hint"), text::mask(&hint, cpus.bits));
    tree.line(format!("{dir}/node"), l.node);
    let dir = format!("/sys/kernel/irq/{}", l.irq);
    tree.line(format!("{dir}/actions"), &l.name);
    tree.line(format!("{dir}/chip_name"), &l.chip);
    tree.line(format!("{dir}/hwirq"), l.hwirq);
}
