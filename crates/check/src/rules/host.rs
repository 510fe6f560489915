//! The host around the device: PCI Express, power, memory, caches.

use ringwise_model::{CpuSet, Fact, Goal, Pcie, User};

use crate::cx::Cx;
use crate::found::HostFound;
use crate::planned;
use crate::rule::Rule;
use crate::say::Say;
use crate::severity::{Confidence, Severity};

const LIMITS: &str = "Pushing the Limits of Kernel Networking (Duyck, 2015)";
const ENA: &str = "ENA Linux driver best practices (Amazon)";
const HTTP: &str = "Extreme HTTP performance tuning (talawah.io, 2021)";

/// Whether the host is a virtual machine, where the numbers of the PCI bus mean nothing.
fn is_guest(cx: &Cx) -> bool {
    cx.s.topology.hypervisor.is_known()
}

/// CPUs that handle queue interrupts.
fn irq_cpus(cx: &Cx) -> CpuSet {
    cx.nics.iter().flat_map(|n| n.queue_vectors()).filter_map(|v| cx.at(v)).collect()
}

/// Reports each PCI Express link of which one property is less than the device supports. `now_and_most`: this property
/// as negotiated and as the device supports it; none where the kernel does not know both.
fn reduced_links(
    cx: &Cx,
    say: &mut Say,
    now_and_most: impl Fn(&Pcie) -> Option<(u32, u32)>,
    found: impl Fn(u32, u32) -> HostFound,
) -> Option<()> {
    if is_guest(cx) {
        return None;
    }
    cx.each(say, |n, say| {
        let p = say.get(&n.pcie)?;
        let (now, most) = now_and_most(p)?;
        if now < most {
            // The reduced link may still carry everything that the port can send.
            let fits = enough(p.now.mtps, p.now.lanes, n.link.speed_mbps.known().copied());
            say.found(found(now, most)).severity(if fits { Severity::Info } else { Severity::Error });
        }
        Some(())
    })
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "H01",
        title: "PCI Express link too narrow",
        reads: "current_link_width, max_link_width",
        guard: "not in a virtual machine",
        condition: "fewer lanes than the device has",
        severity: Severity::Error,
        why: "The card sits in a slot with fewer lanes, or some are dead: its bandwidth is that much less.",
        source: "kernel source, drivers/pci/pci.c: pcie_print_link_status",
        by_hand: &["reseat the card, or another slot; dmesg tells what limits the link"],
        judge: |cx, say| {
            let lanes = |p: &Pcie| (p.now.lanes > 0 && p.max.lanes > 0).then_some((p.now.lanes, p.max.lanes));
            reduced_links(cx, say, lanes, |lanes, most| HostFound::FewLanes { lanes, most })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H02",
        title: "PCI Express link too slow",
        reads: "current_link_speed, max_link_speed",
        guard: "not in a virtual machine",
        condition: "slower than the device can",
        severity: Severity::Error,
        why: "The slot or the link's training bounds the rate of each lane. Power management may lower it while nothing is sent.",
        source: "kernel source, drivers/pci/pci.c: pcie_print_link_status",
        by_hand: &["look again under load; then slot, riser and firmware settings"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            let rate = |p: &Pcie| p.now.mtps.zip(p.max.mtps);
            reduced_links(cx, say, rate, |mtps, most_mtps| HostFound::SlowLanes { mtps, most_mtps })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H03",
        title: "the bus cannot carry the ports",
        reads: "current link of the bus, speed of all ports of the device",
        guard: "not in a virtual machine",
        condition: "four fifths of the link's rate are less than the ports of the card together",
        why: "Both ports at full rate do not fit through the slot.",
        source: "PCI Express base specification: encoding and overhead",
        by_hand: &["a slot with more lanes or a later generation, or one port"],
        under: &["H01", "H02"],
        judge: |cx, say| {
            if is_guest(cx) {
                return None;
            }
            cx.each(say, |n, say| {
                let p = say.get(&n.pcie)?;
                let (mtps, lanes) = (p.now.mtps?, p.now.lanes);
                let card = |a: &str| a.rsplit_once('.').map(|(c, _)| c.to_string());
                let mine = card(n.dev.bus_address.as_deref()?)?;
                let ports: Vec<_> =
                    cx.s.tunable()
                        .filter(|o| o.dev.bus_address.as_deref().and_then(card).as_deref() == Some(&mine))
                        .filter_map(|o| o.link.speed_mbps.known().copied())
                        .collect();
                let need: u64 = ports.iter().map(|s| u64::from(*s)).sum();
                let have = u64::from(mtps) * u64::from(lanes) * encoding(mtps) / 100 * 8 / 10;
                if need > have && lanes > 0 {
                    say.found(HostFound::LinkTooNarrow {
                        mtps,
                        lanes,
                        carries_mbps: have,
                        ports: ports.len() as u32,
                        needs_mbps: need,
                    });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H04",
        title: "small PCI Express payload",
        reads: "configuration space: DevCap, DevCtl",
        guard: "not in a virtual machine; root",
        condition: "MaxPayload is 128 bytes though the device can do more",
        severity: Severity::Info,
        why: "More headers for the same data. The smallest on the way to the processor decides.",
        source: "kernel parameters: pci=pcie_bus_perf",
        by_hand: &["pci=pcie_bus_perf, with care: it must fit every device below the port"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            if is_guest(cx) {
                return None;
            }
            cx.each(say, |n, say| {
                let c = *say.get(cx.i.extra.devs.get(n.name())?.pci.as_ref()?)?;
                if n.link.speed_mbps.known().is_none_or(|s| *s < 10_000) {
                    return None;
                }
                if c.max_payload == 128 && c.max_payload_capable > 128 {
                    say.found(HostFound::SmallPayload { bytes: c.max_payload, most: c.max_payload_capable });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H05",
        title: "small PCI Express read requests",
        reads: "configuration space: DevCtl",
        guard: "not in a virtual machine; root",
        condition: "MaxReadReq below 512 bytes; below 4096 from 100 Gbit/s",
        severity: Severity::Info,
        why: "The device fetches what it sends in requests of this size, and may have only so many on their way.",
        source: "Ubuntu wiki, FirmwareTestSuite: maxreadreq",
        by_hand: &["the firmware's setting, or setpci on DevCtl after reading it"],
        confidence: Confidence::Likely,
        judge: |cx, say| {
            if is_guest(cx) {
                return None;
            }
            cx.each(say, |n, say| {
                let c = *say.get(cx.i.extra.devs.get(n.name())?.pci.as_ref()?)?;
                let speed = *n.link.speed_mbps.known()?;
                if speed < 10_000 {
                    return None;
                }
                let least = if speed >= 100_000 { 4096 } else { 512 };
                if c.max_read_request < least {
                    say.found(HostFound::SmallReadRequests { bytes: c.max_read_request, mbps: speed });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H06",
        title: "PCI Express links sleep",
        reads: "policy of pcie_aspm, LnkCtl",
        guard: "a goal for latency; not in a virtual machine",
        condition: "the link may sleep and the policy is not performance",
        why: "A link that sleeps takes microseconds to wake up, and the packet waits.",
        source: "Improve network performance by setting per-queue interrupt moderation in Linux (Intel)",
        by_hand: &["echo performance > /sys/module/pcie_aspm/parameters/policy"],
        judge: |cx, say| {
            if cx.goal() != Goal::Latency || is_guest(cx) {
                return None;
            }
            let policy = cx.s.host.power.as_ref().and_then(|p| p.aspm.known().cloned());
            cx.each(say, |n, say| {
                let c = *say.get(cx.i.extra.devs.get(n.name())?.pci.as_ref()?)?;
                if c.aspm && policy.as_deref() != Some("performance") {
                    say.found(HostFound::LinkMaySleep { policy: policy.clone() });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H07",
        title: "CPUs that sleep deeply",
        reads: "pm_qos_resume_latency_us of the queues' CPUs",
        guard: "a goal for latency",
        condition: "the plan has a limit for them",
        ours: Some(""),
        also: &["R1.11"],
        judge: |cx, say| planned::judge("H07", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "H08",
        title: "CPUs run slowly on purpose",
        reads: "scaling_governor, energy_performance_preference",
        guard: "a goal for latency or stream",
        condition: "the governor of a queue's CPU is powersave without a preference for performance, ondemand, conservative or schedutil",
        why: "The CPU must first be seen to be busy before it runs faster.",
        source: "kernel documentation, admin-guide/pm/cpufreq",
        by_hand: &["cpupower frequency-set -g performance"],
        judge: |cx, say| {
            if !matches!(cx.goal(), Goal::Latency | Goal::Stream) {
                return None;
            }
            let p = cx.s.host.power.as_ref()?;
            let all = say.get(&p.governor)?;
            let used = irq_cpus(cx);
            for (governor, cpus) in all.iter().filter(|(g, _)| *g != "performance") {
                let mut hit = cpus.intersection(&used);
                if governor == "powersave"
                    && let Some(pref) = p.preference.known()
                {
                    // With intel_pstate in active mode, `powersave` is the normal governor, and the energy preference
                    // decides.
                    let quick =
                        pref.iter().filter(|(k, _)| *k == "performance").fold(CpuSet::new(), |a, (_, c)| a.union(c));
                    hit = hit.difference(&quick);
                }
                if !hit.is_empty() {
                    say.found(HostFound::Governor { governor: governor.clone(), cpus: hit });
                }
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H10",
        title: "IOMMU translates every buffer",
        reads: "iommu_group/type of the device, functions held by VFIO",
        guard: "the device is behind an IOMMU; nothing is passed through to guests; kernel 5.15, before which the same word stands for both kinds of domain",
        condition: "the domain is strict (DMA; a lazy one is called DMA-FQ)",
        why: "Each mapping that is taken away waits for the hardware to forget it. Receive buffers of drivers with a page_pool stay mapped, what is sent does not.",
        source: LIMITS,
        by_hand: &[
            "boot with iommu.strict=0: the waiting is put off, and a device may reach memory a little longer than it should",
            "boot with iommu=pt (arm64: iommu.passthrough=1): nothing is translated for devices of the host, and none is kept from its memory",
        ],
        more: "What a mapping costs (Duyck, 2015): a lock to get or give back an address, and an access to the IOMMU's hardware to enter or remove it. Drivers avoid it by using pages again.",
        also: &["R1.08"],
        confidence: Confidence::Likely,
        severity: Severity::Info,
        judge: |cx, say| {
            if cx.s.held.iter().any(|h| h.driver.starts_with("vfio")) || cx.kernel()? < (5, 15) {
                return None;
            }
            cx.each(say, |n, say| {
                let t = say.take(cx.i.extra.file(&format!("/sys/class/net/{}/device/iommu_group/type", n.name())))?;
                if t == "DMA" {
                    let fast = n.link.speed_mbps.known().is_some_and(|s| *s >= 10_000);
                    say.found(HostFound::StrictIommu).severity(if fast { Severity::Warning } else { Severity::Info });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H11",
        title: "packets are copied once more",
        reads: "swiotlb io_tlb_used (debugfs)",
        guard: "root, debugfs is mounted",
        condition: "bounce buffers are in use",
        why: "The device cannot reach the memory (confidential machine, 32-bit DMA): each packet goes through a bounce buffer.",
        source: "kernel documentation, core-api/swiotlb",
        by_hand: &[
            "on confidential machines: a larger pool (swiotlb=N); else find out why the device cannot reach all memory",
        ],
        judge: |cx, say| {
            let used = say.take(cx.i.extra.number("/sys/kernel/debug/swiotlb/io_tlb_used"))?;
            if used > 0 {
                say.found(HostFound::BounceBuffer { slots: used });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H12",
        title: "pages wander between nodes",
        reads: "kernel.numa_balancing",
        guard: "more than one node; a goal for latency",
        condition: "it is on",
        severity: Severity::Info,
        why: "The kernel takes mappings away to see who uses a page; where programs are bound to CPUs that is jitter for nothing.",
        source: "kernel documentation, admin-guide/sysctl/kernel",
        by_hand: &["sysctl kernel.numa_balancing=0, where programs are bound to their node"],
        judge: |cx, say| {
            if cx.nodes() < 2 || cx.goal() != Goal::Latency {
                return None;
            }
            let on = say.take(cx.i.extra.number("/proc/sys/kernel/numa_balancing"))?;
            if on > 0 {
                say.found(HostFound::NumaBalancing { value: on });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H13",
        title: "the device's node is unknown",
        reads: "numa_node, local_cpulist",
        guard: "more than one node",
        condition: "the firmware names none, nor CPUs that are near",
        why: "Every CPU counts as near, so queues may end on the far side.",
        source: "kernel documentation, ABI sysfs-bus-pci: numa_node",
        by_hand: &["name near CPUs: ringwise plan DEV --cpus LIST; a newer firmware"],
        severity: Severity::Info,
        judge: |cx, say| {
            if cx.nodes() < 2 {
                return None;
            }
            cx.each(say, |n, say| {
                let some = n.local_cpus.known().is_some_and(|c| !c.is_empty() && !cx.s.topology.online.is_subset(c));
                if !n.node.is_known() && !some {
                    say.found(HostFound::NodeUnknown);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H16",
        title: "mitigations flush between threads",
        reads: "/sys/devices/system/cpu/vulnerabilities",
        guard: "hardware threads are on; a goal for latency",
        condition: "buffers of the CPU are cleared in software, and what runs on the other thread sees them all the same (SMT vulnerable)",
        severity: Severity::Info,
        why: "Every return from the kernel to a program clears buffers of the CPU, after an interrupt too. All mitigations together took up to 28 % of a web benchmark. What risk is taken is the site's policy; nothing here proposes to switch it off.",
        source: HTTP,
        by_hand: &["read Documentation/admin-guide/hw-vuln; nothing is proposed"],
        judge: |cx, say| {
            if cx.goal() != Goal::Latency || cx.s.topology.smt_active != Fact::Known(true) {
                return None;
            }
            let open: Vec<&str> =
                cx.i.extra
                    .vulnerabilities
                    .iter()
                    // For l1tf, "SMT vulnerable" only concerns guests.
                    .filter(|(_, v)| v.contains("Clear CPU buffers") && v.contains("SMT vulnerable"))
                    .map(|(k, _)| k.as_str())
                    .collect();
            if cx.i.extra.vulnerabilities.is_empty() {
                return None;
            }
            if !open.is_empty() {
                let vulnerabilities = open.iter().map(|v| v.to_string()).collect();
                say.found(HostFound::BuffersCleared { vulnerabilities });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H18",
        title: "somebody listens to every packet",
        reads: "/proc/net/packet",
        condition: "a packet socket for all protocols on the interface, or on every one",
        why: "Each packet is looked at by its filter, and copied if it fits: dhclient, lldpd or a forgotten tcpdump cost 6 % of a web benchmark.",
        source: HTTP,
        by_hand: &["ss -0p tells whose it is; stop it, or give it another interface"],
        judge: |cx, say| {
            let all = say.get(cx.i.extra.packet_sockets.as_ref()?)?;
            let every = all.iter().filter(|p| p.protocol == 3 && p.ifindex == 0).count();
            if every > 0 {
                say.found(HostFound::PacketSockets { sockets: every as u32, all_interfaces: true });
            }
            cx.each(say, |n, say| {
                let i = n.dev.ifindex?.0;
                let here = all.iter().filter(|p| p.protocol == 3 && p.ifindex == i).count();
                if here > 0 {
                    say.found(HostFound::PacketSockets { sockets: here as u32, all_interfaces: false });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H20",
        title: "the watchdog disturbs isolated CPUs",
        reads: "kernel.nmi_watchdog, isolated CPUs",
        guard: "CPUs are isolated",
        condition: "it is on",
        severity: Severity::Info,
        why: "Its counter interrupts every CPU every few seconds, isolated ones too (nohz_full ones are spared by default).",
        source: "kernel documentation, admin-guide/lockup-watchdogs",
        by_hand: &["sysctl kernel.nmi_watchdog=0, or watchdog_cpumask without them"],
        judge: |cx, say| {
            let quiet = cx.s.topology.isolated_all();
            let only_nohz = cx.s.topology.nohz_full.known().is_some_and(|n| quiet.is_subset(n));
            if quiet.is_empty() || only_nohz {
                return None;
            }
            if say.take(cx.i.extra.number("/proc/sys/kernel/nmi_watchdog"))? > 0 {
                say.found(HostFound::NmiWatchdog { isolated: quiet });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H22",
        title: "the hypervisor takes CPU time",
        reads: "steal of /proc/stat",
        guard: "a virtual machine",
        condition: "more than 5 % on a CPU that takes queue interrupts",
        why: "While the virtual CPU does not run its queue fills up.",
        source: "kernel documentation, filesystems/proc: /proc/stat",
        rates: true,
        by_hand: &[
            "move the queue to another virtual CPU (ringwise plan --exclude-cpus N), or ask for CPUs of your own",
        ],
        judge: |cx, say| {
            if !is_guest(cx) {
                return None;
            }
            let t = cx.traffic(say)?;
            let used = irq_cpus(cx);
            for (c, cpu) in t.cpus.iter().filter(|(c, _)| used.contains(**c)) {
                if let Some(s) = cpu.steal.filter(|s| *s > 5.0) {
                    say.found(HostFound::StolenTime { cpu: *c, percent: s });
                }
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H23",
        title: "slow clock",
        reads: "current_clocksource, available_clocksource",
        guard: "a faster one is available",
        condition: "it is hpet, acpi_pm or refined-jiffies",
        why: "Every time stamp reads a device instead of a register: microseconds instead of nanoseconds.",
        source: "kernel documentation, timers/timekeeping",
        by_hand: &["dmesg says why the kernel left the faster one"],
        judge: |cx, say| {
            let dir = "/sys/devices/system/clocksource/clocksource0";
            let now = say.take(cx.i.extra.file(&format!("{dir}/current_clocksource")))?;
            let have = say.take(cx.i.extra.file(&format!("{dir}/available_clocksource")))?;
            let fast = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "xen", "arch_sys_counter"];
            let other = have.split_ascii_whitespace().find(|c| fast.contains(c));
            if ["hpet", "acpi_pm", "refined-jiffies", "jiffies", "pit"].contains(&now.as_str())
                && let Some(other) = other
            {
                say.found(HostFound::SlowClock { clock: now, faster: other.to_string() })
                    .by_hand(format!("echo {other} > {dir}/current_clocksource"));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H24",
        title: "small reserve of memory",
        reads: "vm.min_free_kbytes, MemTotal",
        guard: "an interface of 10 Gbit/s or more; buffers could not be allocated",
        condition: "below 1 % of the memory, and below 1 GB",
        severity: Severity::Info,
        why: "Drivers allocate buffers where nothing can wait; this reserve is what they have then.",
        source: ENA,
        rates: true,
        by_hand: &["sysctl vm.min_free_kbytes=N, 1 to 3 % of the memory"],
        under: &["D05"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            let fast = cx.nics.iter().any(|n| n.link.speed_mbps.known().is_some_and(|s| *s >= 10_000));
            let failed = t.links.values().any(|l| l.alloc_fail.is_some_and(|n| n > 0));
            if !fast || !failed {
                return None;
            }
            let free = say.take(cx.i.extra.number("/proc/sys/vm/min_free_kbytes"))?;
            let total = say.take(cx.i.extra.number("/proc/meminfo"))?;
            if free * 100 < total && free < 1 << 20 {
                say.found(HostFound::LittleFreeMemory { free_bytes: free << 10, of_bytes: total << 10 });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H25",
        title: "XDP in the slow mode",
        reads: "the link's XDP programs",
        guard: "an XDP program is attached",
        condition: "in generic mode",
        why: "The program runs after the packet was allocated: the cost that XDP is to save is paid.",
        source: "kernel documentation, networking/af_xdp",
        by_hand: &["attach it in driver mode (ip link set DEV xdpdrv …); newer drivers have it"],
        judge: |cx, say| {
            cx.each(say, |n, say| {
                let users = say.get(&n.users)?;
                let mode = users.iter().find_map(|u| match u {
                    User::Xdp { mode, .. } => Some(mode.as_str()),
                    _ => None,
                })?;
                if mode == "generic" {
                    say.found(HostFound::GenericXdp);
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "H26",
        title: "the guest's CPU shows no fast copies",
        reads: "flags of /proc/cpuinfo",
        guard: "a virtual machine on x86",
        condition: "rep_good or erms is missing, and fsrm too",
        confidence: Confidence::Likely,
        severity: Severity::Info,
        why: "By these flags the kernel chooses how it clears pages and copies memory; without them it takes longer loops. A CPU model that the hypervisor was told by name may leave them out though the hardware has them.",
        source: LIMITS,
        by_hand: &["CPU model host-passthrough, or add the flags to the model"],
        also: &["R1.16", "R1.17"],
        more: "KVM passes no flags on that its CPU model does not name. Beside it: on x86 NET_IP_ALIGN is 0, because a partial write of a cache line makes the device read, change and write it back, which costs more than an unaligned header.",
        judge: |cx, say| {
            if !is_guest(cx) {
                return None;
            }
            let flags = say.take(cx.i.extra.file("/proc/cpuinfo"))?;
            let has = |f: &str| flags.split_ascii_whitespace().any(|w| w == f);
            // Other architectures have other flags: judge only x86, which has these two.
            if !has("fpu") || !has("sse2") {
                return None;
            }
            let missing: Vec<&str> = ["rep_good", "erms"].into_iter().filter(|f| !has(f)).collect();
            if !missing.is_empty() && !has("fsrm") {
                let flags = missing.iter().map(|f| f.to_string()).collect();
                say.found(HostFound::CpuFlagsMissing { flags });
            }
            Some(())
        },
        ..Rule::BASE
    },
];

/// The share of the raw rate that carries data, in per cent: 8b/10b up to 5 GT/s, 128b/130b above.
fn encoding(mtps: u32) -> u64 {
    if mtps <= 5000 { 80 } else { 98 }
}

/// Whether the lanes can carry one port at full rate; false where the rates are not known.
fn enough(mtps: Option<u32>, lanes: u32, speed: Option<u32>) -> bool {
    let (Some(m), Some(s)) = (mtps, speed) else { return false };
    u64::from(s) <= u64::from(m) * u64::from(lanes) * encoding(m) / 100 * 8 / 10
}
