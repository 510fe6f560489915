//! Lost packets, and CPUs at their limit. All of these rules need two samples.

use ringwise_model::{CpuCounter, Dir, User};

use crate::fix::PlanArguments;
use crate::found::{DropFound, GrownCounter};
use crate::rule::Rule;
use crate::severity::{Confidence, Severity};
use crate::traffic::HostTraffic;

const SYSCTL: &str = "kernel documentation, admin-guide/sysctl/net";
const STATS: &str = "kernel documentation, networking/statistics";
const ROUTER: &str = "Multi-queue network interfaces with SMP on Linux (Greenhost)";
const POOL: &str = "kernel documentation, networking/page_pool; net/core/page_pool.c: page_pool_put_unrefed_netmem, __page_pool_put_page, \
                    __page_pool_alloc_netmems_slow, page_pool_refill_alloc_cache";
const ENA: &str = "ENA Linux driver best practices (Amazon)";

/// Share of a CPU's time in interrupts and softirqs, in per cent. Above `BUSY` the CPU is busy, above `WALL` it is at
/// its limit.
const BUSY: f64 = 50.0;
const WALL: f64 = 90.0;

pub(super) static RULES: &[Rule] = &[
    Rule {
        id: "D01",
        title: "packets dropped at a full backlog",
        reads: "/proc/net/softnet_stat column 2, one line per CPU",
        guard: "a CPU has this counter in both samples",
        condition: "the counter grows",
        confirm: "the second column of /proc/net/softnet_stat (hexadecimal, one line per CPU) grows while traffic flows",
        severity: Severity::Error,
        why: "The backlog of a CPU, its queue of packets that wait for processing, was full. RPS, tunnels, veth and the loopback interface use it.",
        source: SYSCTL,
        by_hand: &[
            "spread RPS over more CPUs first; a longer backlog (net.core.netdev_max_backlog) only helps with bursts",
        ],
        rates: true,
        under: &["D15"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            counted(t, CpuCounter::SoftnetDropped)?;
            let each = t.cpus_of(CpuCounter::SoftnetDropped);
            let n: u64 = each.iter().map(|l| l.1).sum();
            if n > 0 {
                let limit = cx.sysctl("net.core.netdev_max_backlog").known().and_then(|v| v.parse::<u64>().ok());
                say.found(DropFound::BeforeStack { per_second: t.per_second(n), each, limit });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "D02",
        title: "softirq budget used up",
        reads: "/proc/net/softnet_stat column 3, /proc/stat",
        guard: "a CPU has this counter and its times in both samples",
        condition: "the counter grows by more than 10 per second on a CPU that spends more than half of its time in softirqs",
        confirm: "the third column of /proc/net/softnet_stat (hexadecimal, one line per CPU) grows while traffic flows",
        why: "The softirq stopped with packets left, because the budget (net.core.netdev_budget) or its time limit was used up. The rest waits for the next softirq or for ksoftirqd.",
        source: SYSCTL,
        by_hand: &[
            "spread the load over more CPUs first",
            "sysctl net.core.netdev_budget=600, and since kernel 4.12 net.core.netdev_budget_usecs=16000; watch the scheduling delay of programs",
        ],
        rates: true,
        under: &["D15"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            let mut known = None;
            for (c, cpu) in &t.cpus {
                let (Some(n), Some(softirq_percent)) = (cpu.counts.get(CpuCounter::SoftnetSqueezed), cpu.softirq)
                else {
                    continue;
                };
                known = Some(());
                let rate = t.per_second(n);
                if rate > 10.0 && softirq_percent > BUSY {
                    say.found(DropFound::BudgetUsedUp { cpu: *c, per_second: rate, softirq_percent });
                }
            }
            known
        },
        ..Rule::BASE
    },
    Rule {
        id: "D03",
        title: "large flows limited",
        reads: "/proc/net/softnet_stat column 11",
        guard: "a CPU has this counter in both samples",
        condition: "the counter grows",
        confirm: "the eleventh column of /proc/net/softnet_stat (hexadecimal, one line per CPU) grows",
        severity: Severity::Info,
        why: "While a CPU's backlog is more than half full, the flow limit drops packets of a flow that sent more than half of the last 256 packets. This is its purpose.",
        source: "kernel documentation, networking/scaling",
        by_hand: &["if you do not want the limit: sysctl net.core.flow_limit_cpu_bitmap=0"],
        rates: true,
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            counted(t, CpuCounter::SoftnetFlowLimit)?;
            let n: u64 = t.cpus_of(CpuCounter::SoftnetFlowLimit).iter().map(|l| l.1).sum();
            if n > 0 {
                say.found(DropFound::FlowLimit { per_second: t.per_second(n) });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "D04",
        title: "packets lost in the NIC",
        reads: "rx_missed_errors, rx_fifo_errors of the interface",
        guard: "the interface has one of these counters in both samples",
        condition: "one of them grows; the larger one counts, because some drivers count the same loss in both",
        confirm: "ip -s -s link show DEV (missed, fifo); ringwise watch --queues shows the queue and its CPU",
        severity: Severity::Error,
        why: "The receive ring had no free descriptor: the CPU of the queue was too slow, or the ring was too short for a burst.",
        source: STATS,
        more: "Time budget at 10 Gbit/s (Duyck, 2015): a frame of 60 bytes takes 84 bytes on the wire, so 14.88 million frames arrive per second, one every 67.2 ns. A read that the L3 cache answers takes 30 cycles, 12 ns at 2.6 GHz.",
        also: &["R1.01"],
        by_hand: &[
            "find the queue whose CPU is at its limit (ringwise watch --queues): use more queues or another layout first, then a longer ring",
        ],
        rates: true,
        judge: |cx, say| {
            cx.each_rate(say, |_, l, t, say| {
                let missed = l.counts.get("rx_missed_errors");
                // igb counts packets without a descriptor per queue, and reports the sum in this counter.
                let fifo = l.counts.get("rx_fifo_errors");
                let n = missed.max(fifo)?;
                if *n > 0 {
                    let both = [("rx_missed_errors", missed), ("rx_fifo_errors", fifo)];
                    let grown =
                        |(name, n): (&str, Option<&u64>)| Some(GrownCounter { name: name.to_string(), by: *n? });
                    say.found(DropFound::InNic {
                        per_second: t.per_second(*n),
                        counters: both.into_iter().filter_map(grown).collect(),
                        seconds: t.seconds,
                        received: l.rx_packets,
                    });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "D05",
        title: "no memory for receive buffers",
        reads: "rx-alloc-fail of queues (qstats or ethtool -S)",
        guard: "a queue of the interface has this counter in both samples",
        condition: "the counter grows",
        confirm: "ethtool -S DEV, counters with alloc in their name",
        why: "The driver found no memory page for a receive buffer: the kernel's reserve for allocations that cannot wait is too small.",
        source: ENA,
        more: "Since kernel 3.19 (Duyck, 2015), page fragments and socket buffers come from a cache that belongs to NAPI on each CPU, so most packets need no allocator call and no disabled interrupts.",
        by_hand: &["sysctl vm.min_free_kbytes=N, with N (in KiB) at 1 to 3 % of the memory"],
        rates: true,
        judge: |cx, say| {
            cx.each_rate(say, |_, l, t, say| {
                let n = l.alloc_fail?;
                if n > 0 {
                    say.found(DropFound::NoBuffers { per_second: t.per_second(n) });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "D06",
        title: "damaged frames",
        reads: "rx_crc_errors, rx_length_errors, rx_frame_errors",
        guard: "the interface is in both samples",
        condition: "one of them grows",
        confirm: "ip -s -s link show DEV (crc, length, frame)",
        why: "The cable, the optics or a port damages frames, or the two ends disagree about FEC or the frame size. Tuning does not help.",
        source: STATS,
        by_hand: &["check with ethtool -m DEV and ethtool --show-fec DEV; replace the cable or the optics"],
        rates: true,
        judge: |cx, say| {
            cx.each_rate(say, |_, l, t, say| {
                let names = ["rx_crc_errors", "rx_length_errors", "rx_frame_errors"];
                let seen = names.iter().filter(|n| l.count(n) > 0);
                let counters: Vec<_> = seen.map(|n| (n.to_string(), t.per_second(l.count(n)))).collect();
                if !counters.is_empty() {
                    say.found(DropFound::Damaged { counters });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "D07",
        title: "packets dropped without overload",
        reads: "rx_dropped, rx_missed_errors",
        guard: "the interface has rx_dropped in both samples",
        condition: "rx_dropped grows by more than 1 per second, while rx_missed_errors does not grow and no backlog is full",
        confirm: "tcpdump -i DEV shows packets that no program on this host uses",
        severity: Severity::Info,
        why: "Usually no program uses these packets: unknown protocols, VLANs that do not exist here, or the inactive member of a bond. Some drivers also count packets here for which they had no descriptor or memory (ena, gve).",
        source: STATS,
        by_hand: &["no loss of performance; tcpdump -i DEV shows which packets arrive"],
        rates: true,
        confidence: Confidence::Likely,
        judge: |cx, say| {
            cx.each_rate(say, |_, l, t, say| {
                let n = *l.counts.get("rx_dropped")?;
                let full = t.cpus.values().any(|c| c.counts.get(CpuCounter::SoftnetDropped).is_some_and(|n| n > 0));
                if t.per_second(n) > 1.0 && l.count("rx_missed_errors") == 0 && !full {
                    say.found(DropFound::ForNobody { per_second: t.per_second(n) });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "D09",
        title: "transmit queue timed out",
        reads: "queues/tx-*/tx_timeout",
        guard: "a transmit queue has this counter in both samples",
        condition: "the counter grows",
        confirm: "cat /sys/class/net/DEV/queues/tx-*/tx_timeout; dmesg (NETDEV WATCHDOG)",
        severity: Severity::Error,
        why: "The kernel's watchdog found a queue that had not sent for seconds. The cause is the driver, the firmware, or a CPU that did not process the completions.",
        source: "kernel documentation, ABI sysfs-class-net-queues",
        by_hand: &["read dmesg; use a newer driver or firmware; check the CPU of the queue's interrupt"],
        rates: true,
        judge: |cx, say| {
            cx.each_rate(say, |_, l, _, say| {
                let stuck: Vec<u32> =
                    l.of(Dir::Tx).filter(|q| q.timeouts.is_some_and(|n| n > 0)).map(|q| q.queue).collect();
                l.of(Dir::Tx).find_map(|q| q.timeouts)?;
                if !stuck.is_empty() {
                    say.found(DropFound::TransmitTimeout { queues: stuck });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "D10",
        title: "UDP receive buffers overflow",
        reads: "/proc/net/snmp Udp RcvbufErrors, and of IPv6",
        guard: "/proc/net/snmp could be read in both samples",
        condition: "the counter grows",
        confirm: "nstat -az UdpRcvbufErrors Udp6RcvbufErrors; ss -uamp shows the drops of each socket (d)",
        why: "The program reads too slowly. It often runs on the CPU that handles the interrupts, or on the other thread of that core: on another core that shares the cache, a program received three times as much.",
        source: "How to receive a million packets per second (Cloudflare, 2015); XDP paper, cpumap notes",
        by_hand: &[
            "move the thread to another core that shares the cache: taskset -pc CPU TID",
            "use several sockets with SO_REUSEPORT, or a larger SO_RCVBUF (limited by net.core.rmem_max)",
        ],
        rates: true,
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            // A loss that did not grow is left out of the samples; datagrams are counted in the same file.
            t.protocols.get("Udp:InDatagrams")?;
            let n = t.protocol("Udp:RcvbufErrors") + t.protocol("Udp6:RcvbufErrors");
            if n > 0 {
                say.found(DropFound::UdpBuffers { per_second: t.per_second(n) });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "D11",
        title: "connections lost at full listen queues",
        reads: "/proc/net/netstat TcpExt ListenOverflows, ListenDrops",
        guard: "/proc/net/netstat could be read in both samples",
        condition: "one of them grows",
        confirm: "nstat -az TcpExtListenOverflows TcpExtListenDrops; ss -lnt shows the queue (Recv-Q) and its limit (Send-Q)",
        why: "The program accepts connections too slowly, or its listen queue is too short. The NIC is not the cause.",
        source: "kernel documentation, networking/snmp_counter",
        by_hand: &["raise the backlog of the program, and net.core.somaxconn, which limits it"],
        rates: true,
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            // Losses that did not grow are left out of the samples; these segments are counted in the same file.
            t.protocols.get("TcpExt:TCPOFOQueue")?;
            let (over, drops) = (t.protocol("TcpExt:ListenOverflows"), t.protocol("TcpExt:ListenDrops"));
            if over + drops > 0 {
                say.found(DropFound::ListenQueues { per_second: t.per_second(over.max(drops)) });
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "D12",
        title: "limit of the cloud provider reached",
        reads: "ethtool -S *_allowance_exceeded",
        guard: "the driver is ena",
        condition: "one of them grows",
        confirm: "ethtool -S DEV | grep allowance_exceeded",
        severity: Severity::Error,
        why: "The hypervisor drops or delays traffic above the instance's allowance of bandwidth, packets or connections. No setting of this host changes that.",
        source: ENA,
        by_hand: &["use a larger instance, or more interfaces"],
        rates: true,
        judge: |cx, say| {
            cx.each_rate(say, |n, l, t, say| {
                if cx.driver(n) != "ena" {
                    return None;
                }
                let exceeded: Vec<(String, f64)> = l
                    .counts
                    .iter()
                    .filter(|(k, n)| k.ends_with("_allowance_exceeded") && **n > 0)
                    .map(|(k, n)| (k.trim_end_matches("_exceeded").to_string(), t.per_second(*n)))
                    .collect();
                l.counts.keys().find(|k| k.ends_with("_allowance_exceeded"))?;
                if !exceeded.is_empty() {
                    say.found(DropFound::Allowance { exceeded });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "D13",
        title: "packets dropped by the queueing discipline",
        reads: "drops of the root queueing discipline",
        guard: "the root queueing discipline has this counter in both samples",
        condition: "the counter grows",
        confirm: "tc -s qdisc show dev DEV (dropped)",
        why: "The host sends more than the link or the limit of the queueing discipline allows. fq and fq_codel drop packets on purpose, to keep queues short.",
        source: "tc(8)",
        by_hand: &[
            "find the discipline with tc -s qdisc show dev DEV; raise a limit that is too low, or use a faster link",
        ],
        rates: true,
        confidence: Confidence::Likely,
        judge: |cx, say| {
            cx.each_rate(say, |_, l, t, say| {
                let n = *l.counts.get("qdisc_drops")?;
                if n > 0 {
                    say.found(DropFound::QueueDiscipline { per_second: t.per_second(n) });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "D14",
        title: "ksoftirqd is busy",
        reads: "/proc/PID/schedstat of ksoftirqd",
        guard: "the CPU time of a ksoftirqd thread is in both samples",
        condition: "ksoftirqd uses more than half of a CPU",
        confirm: "top -H shows a high CPU use of ksoftirqd/N",
        why: "The CPU has so much softirq work that the kernel moved it to a thread, which competes with programs at normal priority.",
        source: SYSCTL,
        by_hand: &["spread the interrupts; enable GRO; use threaded NAPI to choose where the threads run"],
        rates: true,
        under: &["D15", "A01", "A03"],
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            t.cpus.values().find_map(|c| c.ksoftirqd)?;
            for (c, cpu) in &t.cpus {
                if let Some(k) = cpu.ksoftirqd.filter(|k| *k > BUSY) {
                    say.found(DropFound::Ksoftirqd { cpu: *c, percent: k });
                }
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "D15",
        title: "one CPU is the bottleneck",
        reads: "/proc/stat by CPU",
        guard: "more than one CPU",
        condition: "one CPU is above 90 % interrupt time, while the mean is below 50 %",
        confirm: "mpstat -P ALL 1 (columns %irq and %soft)",
        severity: Severity::Error,
        why: "One CPU does work that several could share: a router lost packets from 558,000 packets per second on, a rate that six CPUs carried without loss.",
        source: ROUTER,
        ours: Some(""),
        more: "A single flow always stays on one CPU. A change of the number of queues needs --allow-disruption.",
        rates: true,
        judge: |cx, say| {
            let t = cx.traffic(say)?;
            if t.cpus.len() < 2 {
                return None;
            }
            let (cpu, top, mean) = t.busiest()?;
            if top > WALL && mean < BUSY {
                let cpus = t.cpus.len() as u32;
                let f = say.found(DropFound::OneCpu { cpu, percent: top, cpus, mean_percent: mean });
                let layout = ["A01", "A02", "A04", "A15", "Q04"];
                if layout.iter().any(|r| cx.planned.contains_key(*r)) {
                    f.fix(cx, PlanArguments::planned())
                } else {
                    f
                };
            }
            Some(())
        },
        ..Rule::BASE
    },
    Rule {
        id: "D16",
        title: "pause frames stop the link partner",
        reads: "pause frames sent and received, pause storms",
        condition: "one of the counters grows by more than 1 per second, or a pause storm is counted (Linux 7.1)",
        confirm: "ethtool -I -a DEV; ethtool -S DEV | grep -i pause; ethtool -a DEV shows whether pause frames are on",
        guard: "the device has no RDMA user",
        why: "A receiver that is slow for a moment stops the whole switch port: packets for idle queues wait too, and so do packets for other hosts behind that port.",
        source: "Pushing the Limits of Kernel Networking (Duyck, 2015)",
        by_hand: &["ethtool -A DEV autoneg off rx off tx off (not for RDMA or lossless storage)"],
        rates: true,
        judge: |cx, say| {
            cx.each_rate(say, |n, l, t, say| {
                // An RDMA network needs pause frames to be lossless.
                if n.users.known().is_some_and(|u| u.iter().any(|u| matches!(u, User::Rdma { .. }))) {
                    return None;
                }
                // Some drivers report storms and no pause frames, others the reverse.
                ["rx_pause", "tx_pause", "tx_pause_storms"].iter().find(|c| l.counts.contains_key(**c))?;
                let (rx, tx) = (l.count("rx_pause"), l.count("tx_pause"));
                let storms = l.count("tx_pause_storms");
                if storms > 0 {
                    say.found(DropFound::PauseStorms { storms });
                }
                if t.per_second(rx) > 1.0 || t.per_second(tx) > 1.0 {
                    say.found(DropFound::PauseFrames {
                        sent_per_second: t.per_second(tx),
                        received_per_second: t.per_second(rx),
                    });
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
    Rule {
        id: "D17",
        title: "receive buffers are not recycled",
        reads: "counters of page pools (netdev page-pool-stats-get), queues, NAPI instances",
        guard: "the kernel counts page pools (CONFIG_PAGE_POOL_STATS), and the driver names the NAPI instance of a pool (Linux 6.8)",
        condition: "more than 10 % of the pages that the driver takes are not recycled, and more than 100 per second; otherwise, more than 10 % can come from the page allocator (64 for each slow allocation), with more than 100 slow allocations per second",
        confirm: "ynl --family netdev --dump page-pool-stats-get: recycle-ring-full, recycle-released-refcnt and alloc-slow",
        why: "A page that the pool cannot recycle loses its DMA mapping and goes back to the page allocator. The pool has to take a new page and map it for the device, which costs CPU time, with an IOMMU most of all.",
        source: POOL,
        by_hand: &[
            "ring full: more pages come back at once than the ring of the pool holds: a longer receive ring (ethtool -G DEV rx N) also lengthens the ring of the pool on drivers that derive one from the other, such as bnxt_en",
            "still in use: the driver or another user holds a reference to the page when the pool gets it back, or memory was short when the page was allocated (pfmemalloc); the kernel counts both as one",
            "slow allocations alone: after its interrupt moved to another NUMA node, the pool releases the pages of the former node (alloc-waive grows): pin the interrupt; otherwise the pool still grows, packets wait long in sockets, or the driver does not mark its packets for recycling",
        ],
        rates: true,
        severity: Severity::Info,
        confidence: Confidence::Likely,
        judge: |cx, say| {
            cx.each_rate(say, |_, l, t, say| {
                if l.pools.is_empty() {
                    return None;
                }
                for (queue, p) in &l.pools {
                    let much = |percent: Option<f64>, n| percent.filter(|p| *p > 10.0 && t.per_second(n) > 100.0);
                    if let Some(percent) = much(p.lost_percent(), p.lost()) {
                        say.found(DropFound::NotRecycled {
                            queue: *queue,
                            percent,
                            ring_full_per_second: t.per_second(p.ring_full),
                            in_use_per_second: t.per_second(p.in_use),
                        });
                    // Slow allocations also replace pages that were not recycled: they are one finding.
                    } else if let Some(percent) = much(p.slow_percent(), p.slow) {
                        let per_second = t.per_second(p.slow);
                        say.found(DropFound::SlowAllocations { queue: *queue, percent, per_second });
                    }
                }
                Some(())
            })
        },
        ..Rule::BASE
    },
];

/// Whether any CPU has this counter. Older kernels print fewer columns of softnet_stat.
fn counted(t: &HostTraffic, counter: CpuCounter) -> Option<u64> {
    t.cpus.values().find_map(|c| c.counts.get(counter))
}
