//! Every remedy that ringwise offers is a plan that removes the finding.

use std::collections::BTreeSet;

use ringwise_check::{GoalOrigin, Severity, rules};
use ringwise_config::Config;
use ringwise_model::*;

use crate::CASES;
use crate::world::{World, set};
type Edit = fn(&mut World);

/// The words of a command line as a shell would see them.
fn words(command: &str) -> Vec<String> {
    let (mut out, mut word, mut quoted) = (Vec::new(), String::new(), None);
    for c in command.chars() {
        match c {
            '"' | '\'' if quoted == Some(c) => quoted = None,
            '"' | '\'' if quoted.is_none() => quoted = Some(c),
            ' ' if quoted.is_none() => out.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    out.push(word);
    out
}

/// The intent that the program would make from `ringwise plan …`.
fn intent(w: &World, command: &str) -> Intent {
    let words = words(command);
    let mut i = w.intent.clone();
    let mut over: Vec<Config> = Vec::new();
    let mut it = words.iter().skip(2);
    while let Some(word) = it.next() {
        let mut value = || it.next().unwrap_or_else(|| panic!("{command}"));
        match word.as_str() {
            "--goal" => i.goal = value().parse().unwrap(),
            "--allow-disruption" => i.allow_disruption = true,
            "--queues" => i.queues = Some(value().parse().unwrap()),
            // `--take-over` replaces manual changes, and this host has none.
            "--take-over" => {}
            "--set" => over.push(ringwise_config::parse_set(value()).unwrap_or_else(|e| panic!("{command}: {e}"))),
            dev if !dev.starts_with('-') => i.devs.push(dev.into()),
            other => panic!("{command}: {other}"),
        }
    }
    let bound = ringwise_config::bind(&Config::default(), &over, &w.s).unwrap_or_else(|e| panic!("{command}: {e:?}"));
    i.wishes.extend(bound.intent.wishes);
    i
}

/// Judges the host, and follows each remedy on a copy of it.
fn follow(name: &str, w: &World, seen: &mut BTreeSet<String>, wrong: &mut Vec<String>) {
    let r = w.judge();
    for f in r.findings.iter().flat_map(|f| std::iter::once(f).chain(&f.consequences)) {
        let Some(command) = &f.remedy else { continue };
        if ringwise_check::find(&f.rule).is_none_or(|r| r.ours.is_none()) {
            wrong.push(format!("{name}: {} has a remedy, but its page shows no fix", f.rule));
        }
        let mut then = w.clone();
        then.intent = intent(w, command);
        then.drift = Some(Vec::new());
        let plan = match ringwise_plan::plan(&then.s, &then.intent, &[]) {
            Ok(p) => p,
            Err(e) => {
                wrong.push(format!("{name}: {} {command}: {e}", f.rule));
                continue;
            }
        };
        let settings: Vec<_> = plan.steps.iter().map(|s| s.setting.clone()).collect();
        // Drift is known from the journal, not from the host: `apply` removes it by writing the settings.
        if f.rule == "A16" {
            seen.insert(f.rule.clone());
            continue;
        }
        if plan.steps.is_empty() {
            wrong.push(format!("{name}: {} \"{}\": {command} changes nothing: {:?}", f.rule, f.text, plan.refused));
            continue;
        }
        then.s = ringwise_testkit::project::project(&then.s, &settings);
        // The counters are from before the change.
        then.t = if rules().any(|r| r.id == f.rule && r.rates) { quiet(&then) } else { then.t };
        then.intent.allow_disruption = false;
        let after = then.judge();
        let still = after
            .findings
            .iter()
            .flat_map(|f| std::iter::once(f).chain(&f.consequences))
            .find(|o| o.rule == f.rule && o.dev == f.dev);
        if let Some(o) = still {
            wrong.push(format!("{name}: {} \"{}\" is still there after {command}: {}", f.rule, f.text, o.text));
        }
        // The remedy causes no new warning or error either.
        let all = |r: &ringwise_check::Report| {
            let each = r.findings.iter().flat_map(|f| std::iter::once(f).chain(&f.consequences));
            let bad = each.filter(|f| f.severity > Severity::Info);
            bad.map(|f| (f.rule.clone(), f.dev.clone())).collect::<BTreeSet<_>>()
        };
        let new: Vec<_> = all(&after).difference(&all(&r)).cloned().collect();
        if !new.is_empty() {
            wrong.push(format!("{name}: {} {command} brings {new:?}", f.rule));
        }
        seen.insert(f.rule.clone());
    }
}

/// The same traffic without the losses and the load that the remedy removes.
fn quiet(w: &World) -> Option<ringwise_check::HostTraffic> {
    let mut t = w.t.clone()?;
    for l in t.links.values_mut() {
        l.counts.values_mut().for_each(|n| *n = 0);
        l.alloc_fail = Some(0);
    }
    for c in t.cpus.values_mut() {
        c.softirq = Some(20.0);
        c.counts = Default::default();
    }
    t.protocols.insert("TcpExt:TCPOFOQueue".into(), 0);
    Some(t)
}

#[test]
fn followed_everywhere() {
    let (mut seen, mut wrong) = (BTreeSet::new(), Vec::new());
    follow("untuned", &World::untuned(), &mut seen, &mut wrong);
    let edits: &[(&str, Edit)] = &[
        ("router", |w| {
            w.router();
            w.feature("rx-lro", true);
            w.flows(32_768, 4096);
            w.nic().pause = Fact::Known(Pause { autoneg: Some(true), rx: Some(true), tx: Some(true) })
        }),
        ("far", |w| w.irq(2, 9)),
        ("sibling", |w| w.irq(1, 1)),
        ("order", |w| {
            w.irq(0, 2);
            w.irq(1, 0)
        }),
        ("wide", |w| w.nic().vectors[2].asked = Fact::Known(set("0-15"))),
        ("rps", |w| w.rps("0-7")),
        ("rps far", |w| w.rps("8-15")),
        ("half", |w| w.flows(0, 1024)),
        ("other half", |w| w.flows(32_768, 0)),
        ("uneven", |w| w.flows(32_768, 1024)),
        ("small", |w| {
            w.flows(1024, 128);
            w.file("/proc/net/sockstat", "TCP: inuse 900 orphan 0")
        }),
        ("arfs", |w| {
            w.nic().driver = Fact::Known("ice".into());
            w.flows(32_768, 4096);
            w.feature("rx-ntuple-filter", false)
        }),
        ("table", |w| w.rss().table = (0..128).map(|i| [0, 1, 2, 4, 5, 6, 7][i % 7]).collect()),
        ("weights", |w| w.rss().table = (0..128).map(|i| if i < 96 { 0 } else { i % 8 }).collect()),
        ("udp", |w| {
            w.rss().fields.insert("udp4".into(), "sd".into());
            w.protocol("Udp:InDatagrams", 31_000)
        }),
        ("symmetric", |w| {
            w.router();
            w.tracks(5000, 65_536);
            w.nic().driver = Fact::Known("ice".into());
            w.rss().symmetric = Fact::Known("none".into())
        }),
        ("ntuple", |w| {
            w.feature("rx-ntuple-filter", false);
            w.rule(Rule {
                flow: "tcp4".into(),
                fields: [("dst-port".to_string(), "443".to_string())].into(),
                action: Action::Queue(1),
                context: None,
            })
        }),
        ("reorder", |w| {
            w.nic().driver = Fact::Known("ixgbe".into());
            w.feature("rx-ntuple-filter", false);
            w.protocol("TcpExt:TCPOFOQueue", 5000)
        }),
        ("xps", |w| w.nic().tx_queues.iter_mut().for_each(|q| q.xps_cpus = Fact::Known(CpuSet::new()))),
        ("xps hole", |w| w.nic().tx_queues[1].xps_cpus = Fact::Known(CpuSet::new())),
        ("offline", |w| w.nic().rx_queues[2].rps_cpus = Fact::Known(set("77"))),
        ("offline xps", |w| w.nic().tx_queues[2].xps_cpus = Fact::Known(set("4,12,77"))),
        ("default mask", |w| {
            w.s.host.rps_default_mask = Fact::Known(set("0-3"));
            w.s.host.sysctls.insert("net.core.rps_default_mask".into(), Fact::Known("f".into()));
        }),
        ("busy", |w| {
            w.s.host.sysctls.insert("net.core.busy_read".into(), Fact::Known("50".into()));
        }),
        ("gro", |w| w.feature("rx-gro", false)),
        ("tso", |w| w.feature("tx-tcp-segmentation", false)),
        ("nocache", |w| w.feature("tx-nocache-copy", true)),
        ("defer", |w| {
            let Fact::Known(n) = &mut w.nic().napi else { panic!() };
            n.device.defer_hard_irqs = Some(100)
        }),
        ("flush", |w| {
            let Fact::Known(n) = &mut w.nic().napi else { panic!() };
            n.device.gro_flush_timeout_ns = Some(20_000)
        }),
        ("frames", |w| w.coalesce("rx-max-frames", 1)),
        ("ring", |w| w.count("rx_missed_errors", 10)),
        ("wall", |w| {
            w.irq(2, 0);
            w.cpu(0).softirq = Some(98.0)
        }),
        ("vlans", |w| {
            let i = w.nic().dev.ifindex.unwrap();
            w.s.bystanders.above.insert(i, [("vlan".to_string(), 3)].into());
            w.feature("rx-vlan-hw-parse", false)
        }),
        ("tunnels", |w| {
            w.s.bystanders.count.insert("vxlan".into(), 3);
            w.feature("rx-udp_tunnel-port-offload", false)
        }),
        ("isolated", |w| {
            w.s.topology.isolated = Fact::Known(set("2-3"));
            w.rps("2-5")
        }),
        ("drift", |w| w.drift = Some(vec![(Some("eth1".into()), "eth1 rings: applied rx 512, now rx 256".into())])),
        ("rpc", |w| {
            *w = w.clone().goal(Goal::Rpc);
            w.flows(0, 0);
            w.intent.goal = Goal::Rpc;
            w.from = GoalOrigin::ActiveTransaction
        }),
        ("latency", |w| {
            *w = w.clone().goal(Goal::Latency);
            w.coalesce("rx-usecs", 99);
            w.s.host.cpu_latency.values_mut().for_each(|v| *v = Fact::Known("0".into()))
        }),
        ("backlog", |w| {
            w.rps("0-7");
            w.cpu(3).counts = [(CpuCounter::SoftnetRps, 10), (CpuCounter::SoftnetProcessed, 200_000)].into()
        }),
        ("one queue", |w| {
            w.nic().rx_queues.truncate(1);
            w.nic().tx_queues.truncate(1);
            w.nic().tx_queues[0].xps_cpus = Fact::Absent;
            w.nic().vectors.retain(|v| v.rx().iter().all(|q| *q < 1));
            let Fact::Known(c) = &mut w.nic().channels else { panic!() };
            c.combined = Some(Count { now: 1, max: 8 });
            w.rss().table = vec![0; 128];
        }),
        ("small table, and a goal with fewer queues", |w| {
            crate::goal(w, Goal::Rpc);
            w.rss().table = (0..16).map(|i| i % 8).collect();
        }),
    ];
    for (name, edit) in edits {
        let mut w = World::tuned();
        edit(&mut w);
        follow(name, &w, &mut seen, &mut wrong);
    }
    for c in CASES {
        let mut w = World::tuned();
        (c.positive)(&mut w);
        follow(c.rule, &w, &mut seen, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Fail for remedies that no case follows, so that they are not taken for tested.
    let claims: BTreeSet<String> = rules().filter(|r| r.ours.is_some()).map(|r| r.id.to_string()).collect();
    let not_followed: Vec<&String> = claims.difference(&seen).collect();
    assert_eq!(not_followed, Vec::<&String>::new(), "remedies that no case follows");
}
