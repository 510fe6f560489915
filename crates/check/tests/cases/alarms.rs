//! False alarms: hosts that look faulty and are not. Also the readability of findings of recorded hosts.

use ringwise_check::Severity;
use ringwise_model::*;

use crate::world::{World, set};
use crate::{bql, goal, queue, recorded};

/// Cases that look like faults, and are reported as `Info` or not at all.
#[test]
fn no_false_alarms() {
    type Edit = fn(&mut World);
    let silent: &[(&str, &str, Edit)] = &[
        ("Q20", "ixgbe spreads over 16 queues, its own steering reaches the others", |w| {
            w.nic().driver = Fact::Known("ixgbe".into());
            many(w, 32);
            w.rss().table = (0..128).map(|i| i % 16).collect()
        }),
        ("Q20", "mlx4 spreads over a power of two", |w| {
            w.nic().driver = Fact::Known("mlx4_core".into());
            many(w, 12);
            w.rss().table = (0..128).map(|i| i % 8).collect()
        }),
        ("Q05", "the device does not spread PPPoE, so the plan keeps RPS", |w| {
            w.rps("0-7");
            w.s.bystanders.count.insert("ppp".into(), 1);
        }),
        ("H10", "before 5.15 both kinds of domain are called DMA", |w| {
            w.file("/sys/class/net/eth1/device/iommu_group/type", "DMA");
            w.s.host.kernel = Fact::Known("5.10.0-30-amd64".into())
        }),
        ("H16", "l1tf is of guests", |w| {
            goal(w, Goal::Latency);
            w.s.topology.smt_active = Fact::Known(true);
            let text = "Mitigation: PTE Inversion; VMX: conditional cache flushes, SMT vulnerable";
            w.x.vulnerabilities.insert("l1tf".into(), text.into());
        }),
        ("A05", "the scheduler moves it away", |w| {
            w.program(3, false);
            w.thread().cpus[0] = CpuId(5);
        }),
        ("A05", "it is on an isolated CPU on purpose", |w| {
            w.program(3, false);
            w.s.topology.isolated = Fact::Known(set("3"));
        }),
        ("A05", "every core of the node handles interrupts", |w| {
            let all = w.nic().clone();
            w.program(3, false);
            w.s.nics.push(all);
        }),
        ("H21", "it was there once", |w| {
            w.program(2, true);
            w.thread().cpus[0] = CpuId(5);
        }),
        ("D06", "rx_fifo_errors are overruns", |w| w.count("rx_fifo_errors", 9)),
        ("D16", "RDMA wants pause frames", |w| {
            w.nic().users = Fact::Known(vec![User::Rdma { device: "rocep1s0".into() }]);
            w.count("rx_pause", 100)
        }),
        ("M16", "a shaper is there on purpose", |w| w.qdisc("cake", "")),
        ("A18", "AF_XDP's twins in sysfs, as long as the channels are not counted", |w| {
            w.nic().vectors.remove(5);
            w.nic().channels = Fact::unknown("channels-get eth1", "not asked")
        }),
        ("A11", "a hint of all CPUs proposes none", |w| {
            *w = World::untuned();
            let all = w.s.topology.online.clone();
            w.nic().vectors.iter_mut().for_each(|v| v.hint = Fact::Known(all.clone()))
        }),
        ("A11", "an empty hint proposes no CPU", |w| {
            *w = World::untuned();
            w.nic().vectors.iter_mut().for_each(|v| v.hint = Fact::Known(CpuSet::new()))
        }),
        ("F07", "the firewall is not asked about bridged packets", |w| {
            w.bridge();
            w.file("/proc/sys/net/bridge/bridge-nf-call-iptables", "0")
        }),
        ("M18", "two frames fit", |w| bql(w, 3000)),
        ("Q30", "losses on the way are few", |w| {
            w.nic().driver = Fact::Known("ixgbe".into());
            w.feature("rx-ntuple-filter", false);
            w.protocol("TcpExt:TCPOFOQueue", 500)
        }),
    ];
    for (rule, why, edit) in silent {
        let mut w = World::tuned();
        edit(&mut w);
        assert!(!w.judge().ids().contains(rule), "{rule}: {why}");
    }
    let mild: &[(&str, Edit)] = &[
        ("Q27", |w| {
            w.rule(queue(Action::Queue(1)));
            w.feature("rx-ntuple-filter", false)
        }),
        ("Q09", |w| w.flows(32_768, 8192)),
        // The user turned GRO off on purpose.
        ("M10", |w| {
            w.feature("rx-gro", false);
            w.wish(Knob::Feature { name: "gro".into(), on: false })
        }),
        ("A02", |w| w.nic().vectors.iter_mut().for_each(|v| v.asked = Fact::Known(set("0-7")))),
    ];
    for (rule, edit) in mild {
        let mut w = World::tuned();
        edit(&mut w);
        let r = w.judge();
        let f = r.findings.iter().find(|f| f.rule == *rule).unwrap_or_else(|| panic!("{rule}: {:?}", r.ids()));
        assert_eq!(f.severity, Severity::Info, "{rule}: {}", f.text);
    }
    // A byte limit of 2999 does not allow two full frames.
    let mut w = World::tuned();
    bql(&mut w, 2999);
    assert!(w.judge().ids().contains(&"M18"));
    // With this driver overruns count as lost packets.
    let mut w = World::tuned();
    w.count("rx_fifo_errors", 9);
    assert!(w.judge().ids().contains(&"D04"));
}

fn many(w: &mut World, count: u32) {
    let Fact::Known(c) = &mut w.nic().channels else { panic!() };
    c.combined = Some(Count { now: count, max: count });
    let (rx, tx) = (w.nic().rx_queues[0].clone(), w.nic().tx_queues[0].clone());
    w.nic().rx_queues = (0..count).map(|id| RxQueue { id, ..rx.clone() }).collect();
    w.nic().tx_queues = (0..count).map(|id| TxQueue { id, ..tx.clone() }).collect();
}

/// Findings of the recorded lab hosts contain no phrase that only fits a plan, and stay below 300 characters.
#[test]
fn texts_of_recorded_hosts() {
    let hosts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let mut seen = 0;
    for host in std::fs::read_dir(hosts).unwrap() {
        let mut w = World::tuned();
        recorded(&mut w, host.unwrap().file_name().to_str().unwrap());
        for f in w.judge().findings.iter().flat_map(|f| std::iter::once(f).chain(&f.consequences)) {
            let odd = [" its CPU is ", " may run on ", " pin it", " 1 queues", " its core has", "give each CPU"];
            assert!(!odd.iter().any(|o| format!(" {}", f.text).contains(o)), "{}: {}", f.rule, f.text);
            assert!(f.text.chars().count() < 300, "{}: {}", f.rule, f.text);
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

/// A distribution may backport a feature of a later kernel, so an older version alone does not mean "no".
#[test]
fn possible_backports_are_unknown_instead_of_no() {
    let here = |kernel: &str| {
        let mut w = World::tuned();
        w.s.host.kernel = Fact::Known(kernel.into());
        let table = ringwise_check::capability::table(&w.s, &w.x);
        let of = |feature: &str| table.iter().find(|c| c.feature == feature).unwrap().here;
        (of("RSS contexts kept by the core"), of("isolcpus=managed_irq"))
    };
    use ringwise_check::capability::CapabilityState::{No, Unknown, Yes};
    for patched in ["5.14.0-503.11.1.el9_5.x86_64", "5.15.0-304.171.4.el8uek.x86_64", "6.4.0-150600.23-default"] {
        assert_eq!(here(patched), (Unknown, Yes), "{patched}");
    }
    assert_eq!(here("6.1.0-28-amd64"), (No, Yes));
    assert_eq!(here("6.12.0-55.el10.x86_64"), (Yes, Yes));
}

/// A CPU at its limit is added to the sentence about a loss, and is not repeated where it is the worst finding.
#[test]
fn the_first_sentence_adds_the_cpu_that_is_at_its_limit() {
    let sentence = |loss: bool, limit: bool| {
        let mut w = World::tuned();
        if loss {
            w.count("rx_missed_errors", 41_180);
        }
        if limit {
            w.cpu(0).softirq = Some(98.0);
        }
        let r = w.judge();
        let of =
            |rule: &str| r.findings.iter().find(|f| f.rule == rule).map(|f| f.text.trim_end_matches('.').to_string());
        (r.first.clone().unwrap(), of("D04"), of("D15"))
    };
    let count = |text: &str, part: &Option<String>| text.matches(part.as_deref().unwrap()).count();
    let (first, loss, limit) = sentence(true, true);
    assert_eq!((count(&first, &loss), count(&first, &limit)), (1, 1), "{first}");
    let (first, _, limit) = sentence(false, true);
    assert_eq!(count(&first, &limit), 1, "{first}");
}

/// The file is shown beside the host's name only where another host has the same name.
#[test]
fn hosts_of_one_report_are_distinguished() {
    let report = |host: Option<&str>, file: Option<&str>| {
        let mut r = World::tuned().judge();
        (r.host, r.file) = (host.map(Into::into), file.map(Into::into));
        r
    };
    let all = [
        report(Some("a"), Some("one.tar")),
        report(Some("a"), Some("two.tar")),
        report(Some("b"), Some("three.tar")),
        report(Some("(none)"), Some("four.tar")),
        report(None, None),
    ];
    let names: Vec<String> = all.iter().map(|r| r.name_among(&all)).collect();
    assert_eq!(names, ["a (one.tar)", "a (two.tar)", "b", "four.tar", "host"]);
}

/// Unknown facts of a device are noted; they do not count as 0.
#[test]
fn unknown_numbers_of_queues() {
    let unlisted = |w: &mut World| {
        w.nic().tx_queues.clear();
        w.nic().channels = Fact::unknown("channels-get eth1", "not in this recording");
    };
    let mut w = World::tuned();
    w.qdisc("fq_codel", "");
    assert!(w.judge().ids().contains(&"M16"));
    unlisted(&mut w);
    let r = w.judge();
    assert!(!r.ids().contains(&"M16"));
    let noted = |u: &ringwise_check::Unreadable| u.rule == "M16" && u.what == "transmit queues of eth1";
    assert!(r.unreadable.iter().any(noted), "{:?}", r.unreadable);
    assert!(!r.not_applied.contains(&"M16".to_string()));

    // A member whose channels could not be read does not differ from the other.
    let mut w = World::tuned();
    w.bond("802.3ad", "layer3+4 1");
    unlisted(&mut w);
    w.nic().coalesce = Fact::unknown("coalesce-get eth1", "not in this recording");
    let r = w.judge();
    assert!(!r.ids().contains(&"F11"), "{:?}", r.findings.iter().find(|f| f.rule == "F11"));
    assert!(r.unreadable.iter().any(|u| u.rule == "F11" && u.what == "channels-get eth1"), "{:?}", r.unreadable);

    // An unknown number of queues does not count as 0.
    let mut w = World::tuned();
    w.rss().table.truncate(8);
    let Fact::Known(c) = &mut w.nic().channels else { panic!() };
    (c.rx, c.combined) = (None, None);
    let table = ringwise_check::capability::table(&w.s, &w.x);
    let four = table.iter().find(|c| c.feature == "four table entries per queue").unwrap();
    assert!(!four.devs.contains(&"eth1".to_string()), "8 entries for 8 queues: {four:?}");
}

/// 48 queues on two sockets of 24 CPUs: the remote ones are no error, because every local CPU has a queue.
#[test]
fn a_remote_interrupt_is_an_error_only_if_a_local_cpu_is_free() {
    let mut w = World::tuned();
    recorded(&mut w, "article48");
    let far = |w: &World| {
        let r = w.judge();
        let f = r.findings.into_iter().find(|f| f.rule == "A03").expect("queues 24-47");
        (f.severity, f.text.contains("every local CPU has a queue"))
    };
    assert_eq!(far(&w), (Severity::Warning, true));
    // The interrupt of queue 0 goes to the other socket, too.
    let vectors = &mut w.s.nics.iter_mut().find(|n| n.name() == "eth0").unwrap().vectors;
    let remote = vectors.iter().find(|v| v.rx() == [47]).unwrap().effective.clone();
    let v = vectors.iter_mut();
    v.filter(|v| v.rx() == [0]).for_each(|v| (v.asked, v.effective) = (remote.clone(), remote.clone()));
    assert_eq!(far(&w), (Severity::Error, false));
}

/// A transmit interrupt of its own on another socket is an error, like a receive interrupt.
#[test]
fn a_transmit_interrupt_on_another_socket_is_an_error() {
    let severity = |cpu: u32| {
        let mut w = World::tuned();
        let separate = |v: &Vector| {
            let mut tx = v.clone();
            tx.irq = IrqId(v.irq.0 + 100);
            tx.role = Role::Queues { rx: Vec::new(), tx: v.tx().to_vec() };
            tx.asked = Fact::Known(CpuSet::one(CpuId(cpu)));
            tx.effective = tx.asked.clone();
            tx
        };
        let more: Vec<Vector> = w.nic().queue_vectors().map(separate).collect();
        for v in &mut w.nic().vectors {
            if let Role::Queues { tx, .. } = &mut v.role {
                tx.clear();
            }
        }
        w.nic().vectors.extend(more);
        let r = w.judge();
        r.findings.iter().find(|f| f.rule == "A03" && f.dev.as_deref() == Some("eth1")).map(|f| f.severity)
    };
    assert_eq!(severity(8), Some(Severity::Error));
    assert_eq!(severity(0), None);
}

/// A host may be tuned for forwarding before it forwards, so the requested goal counts as well as the guessed role.
#[test]
fn pause_frames_are_judged_by_the_requested_goal() {
    let judged = |g: Goal| {
        let mut w = World::tuned();
        goal(&mut w, g);
        crate::pause(&mut w);
        w.judge()
    };
    assert!(judged(Goal::Forward).ids().contains(&"R1.07"));
    assert!(!judged(Goal::Rpc).ids().contains(&"R1.07"));
}

/// As with pause frames; until the host forwards, LRO drops nothing.
#[test]
fn lro_is_judged_by_the_requested_goal() {
    let judged = |g: Goal, router: bool| {
        let mut w = World::tuned();
        goal(&mut w, g);
        if router {
            w.router();
        }
        w.feature("rx-lro", true);
        w.judge().findings.iter().find(|f| f.rule == "M11").map(|f| f.severity)
    };
    assert_eq!(judged(Goal::Forward, false), Some(Severity::Info));
    assert_eq!(judged(Goal::Rpc, true), Some(Severity::Error));
    assert_eq!(judged(Goal::Rpc, false), None);
}

/// Slow allocations are a finding where few pages were not recycled. Where many were not, they are part of that finding.
#[test]
fn slow_allocations_are_reported() {
    let found = |fast, slow, ring_full| {
        let mut w = World::tuned();
        w.link().pools.insert(3, PoolUse { fast, slow, ring_full, in_use: 0 });
        w.judge().findings.iter().filter(|f| f.rule == "D17").map(|f| f.text.clone()).collect::<Vec<_>>()
    };
    let slow = "receive queue 3: up to 32 % of the buffers come from the page allocator (500 slow allocations/s)";
    assert_eq!(found(100_000, 500, 0), [slow]);
    // A small share of the pages, and few in a second.
    assert!(found(100_000, 150, 0).is_empty());
    assert!(found(1_000, 90, 0).is_empty());
    let lost = found(100_000, 500, 40_000);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].contains("not recycled"), "{lost:?}");
}

/// A single storm is a finding, although few pause frames were sent in the interval.
#[test]
fn a_pause_storm_is_reported() {
    let found = |storms: u64| {
        let mut w = World::tuned();
        w.count("tx_pause_storms", storms);
        w.judge().findings.iter().filter(|f| f.rule == "D16").map(|f| f.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!((found(0).len(), found(2)), (0, vec!["pause storms: 2 events".to_string()]));
}

/// The kernel omits each pause counter that the driver does not set (net/ethtool/pause.c, `pause_put_stats`).
#[test]
fn pause_storms_are_judged_without_counters_of_pause_frames() {
    let judged = |storms: Option<u64>| {
        let mut w = World::tuned();
        w.s.nics.truncate(1);
        let dev = w.nic().name().to_string();
        let counts = &mut w.t.as_mut().unwrap().links.get_mut(&dev).unwrap().counts;
        counts.retain(|name, _| !name.ends_with("_pause"));
        counts.extend(storms.map(|n| ("tx_pause_storms".to_string(), n)));
        let r = w.judge();
        r.findings.iter().filter(|f| f.rule == "D16").map(|f| f.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(judged(Some(1)), ["pause storms: 1 event"]);
    assert!(judged(Some(0)).is_empty() && judged(None).is_empty());
}

/// Each rule is in one count, also one that misses a value and a second sample.
#[test]
fn counts_of_rules_add_up() {
    let hosts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    for host in std::fs::read_dir(hosts).unwrap() {
        let mut w = World::tuned();
        recorded(&mut w, host.unwrap().file_name().to_str().unwrap());
        let r = w.judge();
        let n = r.rule_counts();
        assert_eq!(n.checked + n.not_applied + n.need_samples + n.unreadable, r.rules, "{n:?}");
        assert!(n.checked > 0 && n.need_samples > 0, "{n:?}");
        let unread = |id: &String| r.unreadable.iter().any(|u| u.rule == *id);
        assert!(!r.not_applied.iter().any(|id| unread(id) || r.not_evaluated.contains(id)));
    }
}

#[test]
fn a_program_beside_interrupts_is_a_warning_for_latency_alone() {
    let severity = |goal| {
        let mut w = World::tuned();
        w.intent.goal = goal;
        w.program(3, false);
        w.judge().findings.into_iter().find(|f| f.rule == "A05").map(|f| f.severity)
    };
    assert_eq!(severity(Goal::Balanced), Some(Severity::Info));
    assert_eq!(severity(Goal::Latency), Some(Severity::Warning));
}

/// With the kernel's table, an exhausted CPU differs from a move that is pending.
#[test]
fn an_interrupt_elsewhere_names_the_free_vectors_of_its_cpus() {
    let found = |free: Option<Fact<&[(u32, u32)]>>, managed: bool| {
        let mut w = World::tuned();
        for (vector, asked) in [(2, "4"), (3, "6-7")] {
            let v = &mut w.nic().vectors[vector];
            (v.asked, v.effective) = (Fact::Known(set(asked)), Fact::Known(set("5")));
            if managed {
                v.movable = Movable::No(Immovable::Managed);
            }
        }
        w.x.free_vectors = free.map(|f| f.map(|all| all.iter().map(|(c, n)| (CpuId(*c), *n)).collect()));
        let f = w.judge().findings.into_iter().find(|f| f.rule == "A10").expect("two interrupts are elsewhere");
        (f.severity, f.text.to_string(), f.evidence)
    };
    let (severity, text, evidence) = found(Some(Fact::Known(&[(4, 9), (6, 0), (7, 0)])), false);
    assert_eq!(severity, Severity::Warning);
    let full = "eth1-TxRx-3 configured for CPUs 6-7, goes to CPU 5; CPUs 6-7 have no free vector";
    assert_eq!(text, format!("2 interrupts not on the configured CPU: {full}"));
    let pending = "eth1-TxRx-2 configured for CPU 4, goes to CPU 5; CPU 4 has 9 free vectors";
    assert_eq!(evidence, [full, pending]);
    let (severity, text, _) = found(Some(Fact::Known(&[(4, 9), (6, 0), (7, 1)])), false);
    assert!(severity == Severity::Info && text.ends_with("CPU 4 has 9 free vectors"), "{text}");
    // Managed interrupts have vectors of their own.
    let (severity, _, evidence) = found(Some(Fact::Known(&[(4, 0)])), true);
    assert!(severity == Severity::Info && evidence.iter().all(|e| !e.contains("free")), "{evidence:?}");
    for (fact, why) in [
        (
            Some(Fact::Absent),
            "/sys/kernel/debug/irq/domains/VECTOR does not exist: debugfs is not mounted, or the kernel does not have the file",
        ),
        (Some(Fact::unknown("VECTOR", "needs root")), "VECTOR: needs root"),
        (None, "/sys/kernel/debug/irq/domains/VECTOR: not read"),
    ] {
        let (severity, _, evidence) = found(fact, false);
        assert_eq!(severity, Severity::Info);
        assert_eq!(evidence.last().unwrap(), &format!("free vectors of the CPUs: unknown ({why})"));
    }
}

/// Whoever moves between nodes, or whose interface is idle or of an unknown node, is no program on a remote node.
#[test]
fn a_program_on_a_remote_node_needs_evidence() {
    type Edit = fn(&mut World);
    let cases: &[(&str, Edit)] = &[
        ("its node changed between the samples", |w| {
            w.talks(4, &["eth2"]);
            w.thread().cpus[0] = CpuId(8);
        }),
        ("the interface has no traffic", |w| {
            w.talks(4, &["eth2"]);
            let link = w.t.as_mut().unwrap().links.get_mut("eth2").unwrap();
            (link.rx_packets, link.tx_packets) = (Some(3), Some(4));
        }),
        ("the node of an interface is unknown", |w| {
            w.talks(4, &["eth2"]);
            w.s.nics[1].node = Fact::Absent;
        }),
        ("its connections use no interface with queues", |w| w.talks(4, &[])),
        ("a counter of an interface is unknown", |w| {
            w.talks(4, &["eth2"]);
            w.t.as_mut().unwrap().links.get_mut("eth2").unwrap().rx_packets = None;
        }),
        ("an interface has no counters", |w| {
            w.talks(4, &["eth2"]);
            w.t.as_mut().unwrap().links.remove("eth2");
        }),
        ("one of its addresses is on no interface", |w| {
            w.talks(4, &["eth2"]);
            let Fact::Known(all) = &mut w.t.as_mut().unwrap().connections else { unreachable!() };
            all.get_mut(&812).unwrap().insert("198.51.100.1".parse().unwrap());
        }),
        ("the user has isolated its CPU", |w| {
            w.talks(4, &["eth2"]);
            w.s.topology.isolated = Fact::Known("4".parse().unwrap());
        }),
    ];
    for (name, edit) in cases {
        let mut w = World::tuned();
        edit(&mut w);
        let r = w.judge();
        assert!(!r.ids().contains(&"H14") && r.unreadable.iter().all(|u| u.rule != "H14"), "{name}");
    }
}

/// Connections belong to the members of a bond, and the command moves the program to their node.
#[test]
fn a_program_on_a_remote_node_is_found_through_a_bond() {
    let mut w = World::tuned();
    w.intent.goal = Goal::Latency;
    w.talks(4, &["eth2"]);
    let mut bond = w.s.nics[1].clone();
    w.s.nics[1].addresses = Fact::Known(Vec::new());
    bond.dev.name = "bond0".into();
    bond.lower = vec![bond.dev.ifindex.unwrap()];
    bond.dev.ifindex = Some(IfIndex(99));
    (bond.kind, bond.node) = (NicKind::Software { kind: "bond".into() }, Fact::Absent);
    (bond.rx_queues, bond.tx_queues, bond.vectors) = (Vec::new(), Vec::new(), Vec::new());
    w.s.nics.push(bond);
    let found = w.judge().findings.into_iter().find(|f| f.rule == "H14").expect("eth2 is on node 1");
    assert_eq!(found.severity, Severity::Warning, "with goal latency");
    let text = found.text.to_string();
    assert_eq!(text, "nginx on CPU 4, up to 71 % busy; the connections use eth2, which is on another node");
    let node = w.s.topology.node(NodeId(1)).unwrap().cpus.clone();
    let cpus: CpuSet = found.by_hand[0].split(' ').nth(2).unwrap().parse().unwrap();
    assert!(!cpus.is_empty() && cpus.is_subset(&node), "{:?}", found.by_hand);
}

/// What the cpuset permits is compared with the nodes of the permitted CPUs first, then with those of the interfaces.
#[test]
fn a_cpuset_may_exclude_the_memory_of_the_right_nodes() {
    let found = |edit: fn(&mut World)| {
        let mut w = World::tuned();
        edit(&mut w);
        let r = w.judge();
        assert!(r.unreadable.iter().all(|u| u.rule != "H27"), "{:?}", r.unreadable);
        r.findings.into_iter().find(|f| f.rule == "H27").map(|f| (f.severity, f.text.to_string(), f.evidence))
    };
    let (severity, text, evidence) = found(|w| w.memory(4, "eth1", "4-5", &[1])).unwrap();
    assert_eq!(severity, Severity::Info);
    assert_eq!(text, "nginx on CPU 4, up to 71 % busy; its cpuset excludes memory of node 0 of its CPUs");
    let who = "nginx (process 812, thread 815) used 71 % of CPU 4; its cpuset permits memory of";
    let over = "its process has connections over eth1";
    assert_eq!(evidence, [format!("{who} node 1 only, not of node 0 of its CPUs; {over}")]);
    // CPUs of both nodes, and memory on the other node than the interface.
    let (severity, text, _) = found(|w| {
        w.memory(4, "eth1", "0-15", &[1, 7]);
        w.intent.goal = Goal::Latency;
    })
    .unwrap();
    assert_eq!(severity, Severity::Warning);
    assert_eq!(text, "nginx on CPU 4, up to 71 % busy; its cpuset excludes memory of node 0 of eth1");
    type Edit = fn(&mut World);
    let none: &[(&str, Edit)] = &[
        ("no connection over an interface", |w| {
            w.memory(4, "eth1", "4-5", &[1]);
            w.t.as_mut().unwrap().connections = Fact::Known([(812, Default::default())].into());
        }),
        ("the node has no memory", |w| {
            w.memory(4, "eth1", "4-5", &[1]);
            let Fact::Known(nodes) = &mut w.s.topology.nodes else { unreachable!() };
            nodes.get_mut(&NodeId(0)).unwrap().memory = Fact::Known(NodeMemory { total_bytes: 0 });
        }),
        ("the kernel has no cpusets", |w| {
            w.memory(4, "eth1", "4-5", &[1]);
            w.thread().permitted = Fact::Absent;
        }),
    ];
    for (name, edit) in none {
        assert_eq!(found(*edit), None, "{name}");
    }
    let mut w = World::tuned();
    w.memory(4, "eth1", "4-5", &[1]);
    w.thread().permitted = Fact::unknown("/proc/812/task/815/status", "hidden");
    assert!(w.judge().unreadable.iter().any(|u| u.rule == "H27" && u.why == "hidden"));
}

/// A counter that is not in the samples is unknown, not 0: the precondition of its rule does not hold.
#[test]
fn rules_without_their_counters_do_not_count_as_checked() {
    let rules = ["D01", "D02", "D03", "D04", "D05", "D07", "D09", "D10", "D11", "D13", "D14", "F18"];
    let not_applied = |w: &World| {
        let all = w.judge().not_applied;
        rules.into_iter().filter(|id| all.iter().any(|n| n == id)).collect::<Vec<_>>()
    };
    let mut w = World::tuned();
    for counter in [CpuCounter::SoftnetDropped, CpuCounter::SoftnetSqueezed, CpuCounter::SoftnetFlowLimit] {
        w.cpu(3).counts.set(counter, 0);
    }
    let known = not_applied(&w);
    for id in ["D01", "D02", "D03", "D04", "D10", "D11", "F18"] {
        assert!(!known.contains(&id), "{id}: its counters are there, and did not grow");
    }
    let t = w.t.as_mut().unwrap();
    t.protocols.clear();
    t.cpus.values_mut().for_each(|c| (c.counts, c.ksoftirqd) = (Default::default(), None));
    for l in t.links.values_mut() {
        l.counts.clear();
        l.alloc_fail = None;
        l.queues.iter_mut().for_each(|q| q.timeouts = None);
    }
    assert_eq!(not_applied(&w), rules);
}
