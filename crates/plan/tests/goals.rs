//! The plans of every goal on ten hosts, as text for review. `RINGWISE_BLESS=1` rewrites it.

use std::fmt::Write;
use std::path::Path;

use ringwise_model::{CpuId, CpuSet, Fact, Goal, Intent};
use ringwise_plan::{Plan, explain_rule, plan};
use ringwise_testkit::machines::NicSpec;
use ringwise_testkit::topo::CpuSpec;
use ringwise_testkit::{golden, machines};

fn text(p: &Plan) -> String {
    let mut out = String::new();
    let w = &mut out;
    writeln!(w, "considered {}; {} steps, {} already", p.considered.join(" "), p.steps.len(), p.already).unwrap();
    for l in &p.layout {
        let cpus: Vec<String> = l
            .queues
            .iter()
            .map(|q| {
                let cpu = q.cpu.map_or("?".to_string(), |c| c.to_string());
                format!("{cpu}{}{}", if q.far == Some(true) { "!" } else { "" }, if q.shares_core { "+" } else { "" })
            })
            .collect();
        writeln!(w, "{} queues on {}", l.dev, cpus.join(" ")).unwrap();
    }
    for s in &p.steps {
        let from = match &s.from {
            Fact::Known(f) => f.value_text(),
            Fact::Absent => "absent".into(),
            Fact::Unknown(_) => "unknown".into(),
        };
        let address = s.setting.address().map(|a| a.to_string()).unwrap_or_default();
        writeln!(w, "~ {address}: {from} -> {} [{}]", s.setting.value_text(), s.rule).unwrap();
    }
    for l in &p.left_out {
        writeln!(w, "left out: {} [{}] {}; {}", l.setting.value_text(), l.rule, l.command, l.outage).unwrap();
    }
    for r in &p.refused {
        writeln!(w, "x {}: {}", r.what, r.why).unwrap();
    }
    for l in &p.left_alone {
        writeln!(w, "skipped: {}: {}", l.dev, l.why).unwrap();
    }
    for x in &p.warnings {
        writeln!(w, "warning: {x}").unwrap();
    }
    for g in &p.groups {
        let queues: CpuSet = g.queues.iter().map(|q| CpuId(*q)).collect();
        writeln!(w, "group {} of {}: queues {queues} on CPUs {}", g.name, g.dev, g.cpus).unwrap();
    }
    for a in &p.advice {
        writeln!(w, "advice: {a}").unwrap();
    }
    for e in &p.expected {
        writeln!(w, "expected: {}", e.text).unwrap();
    }
    out
}

fn run(host: &str) {
    let spec = machines::ten().into_iter().find(|h| h.name == host).expect("one of the ten");
    let snapshot = spec.snapshot();
    let mut out = String::new();
    for goal in Goal::ALL {
        for allow_disruption in [false, true] {
            let intent = Intent { goal, allow_disruption, ..Intent::default() };
            let p = plan(&snapshot, &intent, &[]).expect("every goal is possible here");
            for s in &p.steps {
                assert!(explain_rule(&s.rule).is_some(), "{} has no text", s.rule);
                assert_eq!(
                    s.interrupts_traffic,
                    s.setting.address().is_some_and(|a| a.interrupts_traffic_on(&snapshot))
                );
                assert!(allow_disruption || !s.interrupts_traffic);
            }
            for e in p.expected.iter().filter(|e| e.before.is_some() && e.after > e.before) {
                assert!(e.worth.is_some(), "{host}, goal {goal}: {}: the plan names no benefit for it", e.text);
            }
            let may = if allow_disruption { " --allow-disruption" } else { "" };
            writeln!(out, "== {goal}{may}\n{}", text(&p)).unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(format!("{host}.txt"));
    golden::compare(&path, &out);
}

macro_rules! hosts {
    ($($test:ident = $host:literal,)*) => {
        $(#[test] fn $test() { run($host) })*

        #[test]
        fn every_host_is_a_test() {
            let names: Vec<String> = machines::ten().into_iter().map(|h| h.name).collect();
            assert_eq!(names, [$($host),*]);
        }
    };
}

hosts! {
    router16 = "router16",
    router3 = "router3",
    epyc2x64 = "epyc2x64",
    interleaved = "interleaved",
    article48 = "article48",
    guest = "guest",
    one = "one",
    big64 = "big64",
    isolated = "isolated",
    hybrid = "hybrid",
}

/// Half of two CPUs would be one CPU that handles every packet; on one core, the second thread is the other CPU.
#[test]
fn on_two_cpus_latency_uses_both() {
    for cpu in [CpuSpec::flat(2, 1), CpuSpec::flat(1, 2)] {
        let nics = vec![NicSpec::new("eth0", "virtio_net", None, 2, 2)];
        let s = machines::host("two", cpu, nics).snapshot();
        for (goal, allow_disruption) in [(Goal::Latency, false), (Goal::Latency, true), (Goal::Rpc, false)] {
            let p = plan(&s, &Intent { goal, allow_disruption, ..Intent::default() }, &[]).unwrap();
            let cpus: Vec<CpuId> = p.layout[0].queues.iter().filter_map(|q| q.cpu).collect();
            assert_eq!(cpus, [CpuId(0), CpuId(1)], "{goal}");
        }
    }
}
