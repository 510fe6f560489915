//! Rules about the host: power, memory, CPUs.

use ringwise_model::{CpuSet, Fact, Goal, User};

use crate::found::HostFound;
use crate::planned;
use crate::rule::Rule;
use crate::rule_context::RuleContext;
use crate::severity::{Confidence, Severity};

const LIMITS: &str = "Pushing the Limits of Kernel Networking (Duyck, 2015)";
const ENA: &str = "ENA Linux driver best practices (Amazon)";
const HTTP: &str = "Extreme HTTP performance tuning (talawah.io, 2021)";

/// Whether the host is a virtual machine, where the properties of the PCI bus are not those of the hardware.
pub(super) fn is_guest(cx: &RuleContext) -> bool {
    cx.s.topology.hypervisor.is_known()
}

/// CPUs that handle queue interrupts.
fn irq_cpus(cx: &RuleContext) -> CpuSet {
    cx.nics.iter().flat_map(|n| n.queue_vectors()).filter_map(|v| cx.at(v)).collect()
}

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "H07",
        title: "deep CPU sleep states",
        reads: "pm_qos_resume_latency_us of the queues' CPUs",
        guard: "the goal is latency",
        condition: "the plan limits the wake-up latency of these CPUs",
        confirm: "cat /sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us; cpupower idle-info",
        ours: Some("--goal latency"),
        also: &["R1.11"],
        judge: |cx, say| planned::judge("H07", cx, say),
        ..Rule::BASE
    },
    Rule {
        id: "H08",
        title: "CPU governor saves power",
        reads: "scaling_governor, energy_performance_preference",
        guard: "the goal is latency or stream",
        condition: "a CPU that handles queue interrupts has another governor than performance (powersave with the energy preference performance is fine)",
        confirm: "cpupower frequency-info",
        why: "The kernel raises the frequency only after it has seen that the CPU is busy.",
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
        title: "strict IOMMU",
        reads: "iommu_group/type of the device, devices bound to VFIO",
        guard: "the device is behind an IOMMU; no device is passed through to guests; kernel 5.15 or later, because earlier kernels report the same type for strict and lazy domains",
        condition: "the domain is strict (type DMA; a lazy domain has type DMA-FQ)",
        confirm: "cat /sys/class/net/DEV/device/iommu_group/type",
        why: "Each unmapping waits until the hardware has removed the mapping from its cache (IOTLB). Receive buffers of drivers with a page_pool stay mapped, but sent packets do not.",
        source: LIMITS,
        by_hand: &[
            "boot with iommu.strict=0: the kernel flushes the cache later for many mappings at once, so a device can access a buffer for a short time after it was unmapped",
            "boot with iommu=pt (arm64: iommu.passthrough=1): the host's devices use physical addresses, and the IOMMU no longer protects the host's memory from them",
        ],
        more: "Cost of a mapping (Duyck, 2015): a lock to allocate or free an address, and an access to the IOMMU hardware to add or remove it. Drivers avoid this by reusing pages.",
        also: &["R1.08"],
        confidence: Confidence::Likely,
        severity: Severity::Info,
        judge: |cx, say| {
            if cx.s.held.iter().any(|h| h.driver.contains("vfio")) || cx.kernel()? < (5, 15) {
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
        title: "packets are copied through bounce buffers",
        reads: "swiotlb io_tlb_used (debugfs)",
        guard: "needs root and a mounted debugfs",
        condition: "bounce buffers are in use",
        confirm: "cat /sys/kernel/debug/swiotlb/io_tlb_used",
        why: "The device cannot access the memory directly (confidential virtual machine, 32-bit DMA), so each packet is copied through a bounce buffer.",
        source: "kernel documentation, core-api/swiotlb",
        by_hand: &[
            "in a confidential virtual machine, use a larger pool (swiotlb=N); otherwise find out why the device cannot access all memory",
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
        title: "automatic NUMA balancing is on",
        reads: "kernel.numa_balancing",
        guard: "the host has more than one node, and the goal is latency",
        condition: "kernel.numa_balancing is on",
        confirm: "sysctl kernel.numa_balancing",
        severity: Severity::Info,
        why: "The kernel removes page mappings to find out which CPU uses a page. For programs that are bound to CPUs this is jitter without a benefit.",
        source: "kernel documentation, admin-guide/sysctl/kernel",
        by_hand: &["sysctl kernel.numa_balancing=0, if programs are bound to their node"],
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
        guard: "the host has more than one node",
        condition: "the firmware reports neither the node nor local CPUs",
        confirm: "cat /sys/class/net/DEV/device/numa_node (-1) and local_cpulist",
        why: "ringwise treats every CPU as local, so it may place queues on a remote node.",
        source: "kernel documentation, ABI sysfs-bus-pci: numa_node",
        by_hand: &["name its CPUs (plan DEV --cpus LIST; in a file irq_cpus by queue), or update the firmware"],
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
        title: "CPU mitigations leave SMT vulnerable",
        reads: "/sys/devices/system/cpu/vulnerabilities",
        guard: "hardware threads are on, and the goal is latency",
        condition: "the kernel clears CPU buffers in software, and the other thread of the core can still read them (SMT vulnerable)",
        confirm: "grep . /sys/devices/system/cpu/vulnerabilities/*",
        severity: Severity::Info,
        why: "Every return from the kernel to a program clears CPU buffers, also after an interrupt. A web benchmark ran up to 28 % faster without any mitigations. Which risk is acceptable is the site's policy: ringwise does not propose to turn mitigations off.",
        source: HTTP,
        by_hand: &["read Documentation/admin-guide/hw-vuln; ringwise proposes no change"],
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
        title: "packet socket receives every packet",
        reads: "/proc/net/packet",
        guard: "the packet sockets of the network namespace could be read",
        condition: "a packet socket for all protocols is open on the interface, or on all interfaces",
        confirm: "ss -0p; cat /proc/net/packet (Proto 0003)",
        why: "The kernel runs the socket's filter on each packet, and copies the packet if it matches. dhclient, lldpd or a forgotten tcpdump open such sockets; without one, a web benchmark ran 6 % faster.",
        source: HTTP,
        by_hand: &["ss -0p shows the program; stop it, or let it use another interface"],
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
        title: "NMI watchdog disturbs isolated CPUs",
        reads: "kernel.nmi_watchdog, isolated CPUs",
        guard: "CPUs are isolated",
        condition: "the watchdog is on",
        confirm: "sysctl kernel.nmi_watchdog kernel.watchdog_cpumask",
        severity: Severity::Info,
        why: "Its performance counter interrupts every CPU every few seconds, including isolated ones (by default not those in nohz_full).",
        source: "kernel documentation, admin-guide/lockup-watchdogs",
        by_hand: &["sysctl kernel.nmi_watchdog=0, or remove the isolated CPUs from kernel.watchdog_cpumask"],
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
        condition: "more than 5 % steal time on a CPU that handles queue interrupts",
        confirm: "mpstat -P ALL 1 (column %steal)",
        why: "While the virtual CPU does not run, its queue fills up.",
        source: "kernel documentation, filesystems/proc: /proc/stat",
        rates: true,
        by_hand: &[
            "move the queue to another virtual CPU (ringwise plan --goal GOAL --exclude-cpus N), or request dedicated CPUs from the provider",
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
        title: "slow clock source",
        reads: "current_clocksource, available_clocksource",
        guard: "a faster clock source is available",
        condition: "the clock source is hpet, acpi_pm, refined-jiffies, jiffies or pit",
        confirm: "cat current_clocksource and available_clocksource in /sys/devices/system/clocksource/clocksource0",
        why: "Every time stamp reads a device instead of a CPU register, which takes microseconds instead of nanoseconds.",
        source: "kernel documentation, timers/timekeeping",
        by_hand: &["dmesg shows why the kernel does not use the faster one"],
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
                    .manual_command(format!("echo {other} > {dir}/current_clocksource"));
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "H24",
        title: "small memory reserve",
        reads: "vm.min_free_kbytes, MemTotal",
        guard: "an interface of 10 Gbit/s or more; a driver could not allocate receive buffers",
        condition: "the reserve is below 1 % of the memory, and below 1 GB",
        confirm: "sysctl vm.min_free_kbytes; grep MemTotal /proc/meminfo",
        severity: Severity::Info,
        why: "Drivers allocate receive buffers in contexts that cannot wait until the kernel frees memory, so when memory is short they can only use this reserve.",
        source: ENA,
        rates: true,
        by_hand: &["sysctl vm.min_free_kbytes=N, with N (in KiB) at 1 to 3 % of the memory"],
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
        title: "XDP program in generic mode",
        reads: "the link's XDP programs",
        guard: "an XDP program is attached",
        condition: "the program runs in generic mode",
        confirm: "ip link show DEV (xdpgeneric)",
        why: "The program runs after the kernel has allocated the socket buffer (skb), so XDP does not save this cost.",
        source: "kernel documentation, networking/af_xdp",
        by_hand: &["attach it in driver mode (ip link set DEV xdpdrv …); newer drivers support it"],
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
        title: "CPU flags for fast copies are missing",
        reads: "flags of /proc/cpuinfo",
        guard: "a virtual machine on x86",
        condition: "rep_good or erms is missing, and so is fsrm",
        confirm: "grep -o -w -e rep_good -e erms -e fsrm /proc/cpuinfo | sort -u",
        confidence: Confidence::Likely,
        severity: Severity::Info,
        why: "From these flags the kernel chooses how it clears pages and copies memory; without them it uses longer loops. A CPU model that is named in the hypervisor's configuration may omit them, although the hardware has them.",
        source: LIMITS,
        by_hand: &["use the CPU model host-passthrough, or add the flags to the model"],
        also: &["R1.16", "R1.17"],
        more: "KVM passes on only flags that its CPU model names. A related detail: on x86 NET_IP_ALIGN is 0, because a partial write of a cache line makes the device read, change and write back the line, which costs more than an unaligned header.",
        judge: |cx, say| {
            if !is_guest(cx) {
                return None;
            }
            let flags = say.take(cx.i.extra.file("/proc/cpuinfo"))?;
            let has = |f: &str| flags.split_ascii_whitespace().any(|w| w == f);
            // Other architectures have other flags. These two flags exist on every x86 CPU of interest.
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
