//! Competing programs in the plan, in `status`, in the script and in the diff.

use crate::common::*;
use ringwise_emit::{diff, script};
use ringwise_model::{CompetingProgram, Fact, Intent, Irqbalance, Snapshot};
use ringwise_render::{competing, plan};
use ringwise_text::Style;

fn running(unit: bool) -> Irqbalance {
    Irqbalance {
        pid: 812,
        socket: Fact::Known("/run/irqbalance/irqbalance812.sock".into()),
        interval_s: Fact::Known(10),
        args: Fact::Known(vec!["--foreground".into()]),
        banned: Fact::Known(vec![7]),
        unit: if unit { Fact::Known("irqbalance.service".into()) } else { Fact::Absent },
        start: unit.then(|| "/usr/sbin/irqbalance --foreground $IRQBALANCE_ARGS".into()),
        kept: Vec::new(),
        addition: false,
        by_policy: false,
        ours: Vec::new(),
    }
}

fn edge3_with(b: Irqbalance) -> Snapshot {
    let mut s = edge3();
    s.host.irqbalance = Fact::Known(b);
    s
}

fn rival(name: &str, sets: &str, evidence: &str, running: bool) -> CompetingProgram {
    CompetingProgram {
        name: name.into(),
        sets: sets.into(),
        devices: Vec::new(),
        evidence: evidence.into(),
        setup: None,
        running,
    }
}

fn intent() -> Intent {
    Intent { devs: vec!["eth1".into(), "eth2".into()], ..Intent::default() }
}

/// The part of the page from `host` to the empty line behind it.
fn block(text: &str) -> String {
    let lines = text.lines().skip_while(|l| *l != "host").take_while(|l| !l.is_empty());
    lines.map(|l| format!("{l}\n")).collect()
}

#[test]
fn the_plan_shows_what_irqbalance_would_do_and_how_it_is_configured() {
    for (unit, after) in [(true, "(also after its restart)"), (false, "(until it restarts)")] {
        let s = edge3_with(running(unit));
        let p = ringwise_plan::plan(&s, &intent(), &[]).unwrap();
        let text = block(&plan::text(&p, Some(&s), &plan::PlanPageOptions::default(), &Style::plain(Some(80))));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("~ irqbalance        now   running, would move 1"), "{text}");
        assert!(text.contains("interrupts of eth1 eth2 within"), "{text}");
        assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(after), "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(flat.contains("systemd did not start it"), !unit, "{text}");
        let first = p.steps[0].setting.address().unwrap();
        assert_eq!(first.family(), ringwise_knob::Family::Rivals, "before anything else is written");
        assert!(diff::text(&p).contains("+eth1/irqbalance = all banned\n"));
    }
}

#[test]
fn the_script_reports_that_it_does_not_configure_irqbalance() {
    let s = edge3_with(running(true));
    let p = ringwise_plan::plan(&s, &intent(), &[]).unwrap();
    let text = script::text(&p, &s).unwrap();
    assert!(text.contains("\n  by_hand eth1\n") && text.contains("this script cannot configure irqbalance"), "{text}");
}

#[test]
fn an_irqbalance_that_does_not_answer_is_reported() {
    let mut b = running(true);
    let why = "no answer: irqbalance answers only root";
    b.banned = Fact::unknown("irqbalance setup", why);
    let s = edge3_with(b);
    let p = ringwise_plan::plan(&s, &intent(), &[]).unwrap();
    assert!(
        p.refused.iter().any(|r| r.what == "eth1 irqbalance" && r.why.to_string().contains(why)),
        "{:?}",
        p.refused
    );
    assert!(competing::line(&s).contains(why));
}

#[test]
fn without_irqbalance_there_is_no_word_of_it() {
    let mut s = edge3();
    (s.host.rivals, s.host.irqbalance) = (Fact::Known(Vec::new()), Fact::Absent);
    let p = ringwise_plan::plan(&s, &intent(), &[]).unwrap();
    assert!(p.target.iter().all(|t| t.address().unwrap().family() != ringwise_knob::Family::Rivals));
    assert_eq!(competing::line(&s), "none (no program, script, crontab, unit, udev rule or .link file)");
}

#[test]
fn the_line_of_status() {
    let mut s = edge3_with(running(true));
    assert_eq!(competing::line(&s), "irqbalance running, may move interrupts every 10 s");
    let numbers = |s: &Snapshot| -> Vec<u32> {
        let all: std::collections::BTreeSet<u32> = s.nic("eth1").unwrap().vectors.iter().map(|v| v.irq.0).collect();
        all.into_iter().collect()
    };
    let mut b = running(true);
    b.banned = Fact::Known(numbers(&s));
    s.host.irqbalance = Fact::Known(b.clone());
    let n = numbers(&s).len();
    assert_eq!(competing::line(&s), format!("irqbalance running, {n} interrupts of eth1 banned (until it restarts)"));
    b.addition = true;
    b.kept = vec![s.nic("eth1").unwrap().dev.bus_address.clone().unwrap()];
    s.host.irqbalance = Fact::Known(b);
    s.host.rival_details = vec![
        rival("ovs-vswitchd", "", "process 40", true),
        rival("script", "interrupt affinity", "/etc/rc.local (set_irq_affinity)", false),
        CompetingProgram {
            setup: Some("profile router".into()),
            ..rival("tuned", "channels, ring sizes", "process 41", true)
        },
    ];
    assert_eq!(
        competing::line(&s),
        format!(
            "irqbalance running, {n} interrupts of eth1 banned; ovs-vswitchd running: ringwise does not change its \
             interfaces' channels; tuned running, profile router: sets channels, ring sizes; not running, sets its values again when \
             it runs: /etc/rc.local (set_irq_affinity) (interrupt affinity)"
        )
    );
}

#[test]
fn others_are_named_in_the_plan_with_what_happens_next() {
    let mut s = edge3_with(running(true));
    let mut link = rival("udev .link file", "channels", "/etc/systemd/network/10-nic.link", false);
    link.devices = vec!["OriginalName=eth9".into()];
    s.host.rival_details = vec![
        CompetingProgram { setup: Some("profile router".into()), ..rival("tuned", "channels", "process 41", true) },
        link.clone(),
    ];
    let p = ringwise_plan::plan(&s, &intent(), &[]).unwrap();
    let said = |p: &ringwise_plan::Plan, w: &str| p.warnings.iter().any(|x| x.contains(w));
    assert!(said(&p, "tuned (process 41, profile router) sets channels when it starts"), "{:?}", p.warnings);
    assert!(!said(&p, "10-nic.link"), "it is about another device");
    link.devices = vec!["OriginalName=eth1".into()];
    s.host.rival_details = vec![link];
    let p = ringwise_plan::plan(&s, &intent(), &[]).unwrap();
    assert!(said(&p, "sets channels on OriginalName=eth1 when the device appears"), "{:?}", p.warnings);
}
