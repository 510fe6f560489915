//! What `plan` prints for a constructed plan.

use crate::common::plans::{edge3_plan, empty};
use crate::common::*;
use crate::unread_facts::ringwise;
use ringwise_emit::{diff, script};
use ringwise_knob::{Reason, Setting, Step};
use ringwise_model::{Fact, Snapshot};
use ringwise_render::plan;
use ringwise_text::Style;

#[test]
fn bands_at_80_columns() {
    let s = edge3();
    let p = edge3_plan(&s);
    let out = plan::text(&p, Some(&s), &plan::PlanPageOptions::default(), &Style::plain(Some(80)));
    for l in out.lines() {
        assert!(l.chars().count() <= 80, "{l}");
    }
    golden("plan-80.txt", &out);
}

#[test]
fn one_line_a_setting() {
    let s = edge3();
    let out = plan::text(
        &edge3_plan(&s),
        Some(&s),
        &plan::PlanPageOptions {
            again: "--goal balanced".into(),
            recorded: true,
            full: true,
            ..plan::PlanPageOptions::default()
        },
        &Style::plain(None),
    );
    golden("plan-full.txt", &out);
}

#[test]
fn every_setting_is_folded_at_80_columns() {
    let s = edge3();
    let how = plan::PlanPageOptions { full: true, ..plan::PlanPageOptions::default() };
    let out = plan::text(&edge3_plan(&s), Some(&s), &how, &Style::plain(Some(80)));
    for l in out.lines() {
        assert!(l.chars().count() <= 80, "{l}");
    }
    golden("plan-full-80.txt", &out);
}

/// With `-v` each interrupt that a step sets is listed with its number, and the masks before and after.
#[test]
fn verbose_lists_interrupts_and_masks() {
    let s = edge3();
    let mut p = edge3_plan(&s);
    let page = |p: &ringwise_plan::Plan, s: &Snapshot, full, verbose| {
        let how = plan::PlanPageOptions { full, ..plan::PlanPageOptions::default() };
        plan::text(p, Some(s), &how, &Style { verbose, ..Style::plain(Some(80)) })
    };
    let of_interrupt = |st: &&Step| matches!(st.setting, Setting::IrqCpus { .. });
    let steps: Vec<Step> = p.steps.iter().filter(of_interrupt).cloned().collect();
    assert!(steps.len() > 4);
    let expected = |number: &str| -> Vec<String> {
        let one = |st: &Step| {
            let Setting::IrqCpus { dev, of, cpus, .. } = &st.setting else { panic!() };
            let irq = ringwise_knob::irq::vector(s.nic(dev).unwrap(), *of).unwrap().irq;
            let Fact::Known(Setting::IrqCpus { cpus: before, .. }) = &st.from else { panic!() };
            let [a, b] = [before, cpus].map(|c| {
                let bits = c.iter().map(|c| 1u64 << c.0).sum::<u64>();
                format!("{} {c} (mask {bits:x})", if c.len() == 1 { "CPU" } else { "CPUs" })
            });
            format!("    {dev} {of}  {number} {irq}, {a} -> {b}")
        };
        steps.iter().map(one).collect()
    };
    for full in [false, true] {
        let (plain, verbose) = (page(&p, &s, full, 0), page(&p, &s, full, 1));
        for line in expected("interrupt") {
            assert!(!plain.contains(&line), "{line}");
            assert!(verbose.lines().any(|l| l == line), "{line}\n{verbose}");
        }
        // Nothing else changes.
        let rest: String = verbose
            .lines()
            .filter(|l| *l != "  interrupts:" && !expected("interrupt").iter().any(|e| e == l))
            .map(|l| format!("{l}\n"))
            .collect();
        assert_eq!(rest, plain);
    }
    golden("plan-v-80.txt", &page(&p, &s, false, 1));

    // A change of channels may give the interrupts other numbers.
    let channels = |combined| Setting::Channels { dev: "eth1".into(), rx: None, tx: None, combined: Some(combined) };
    let first = Step { from: Fact::Known(channels(8)), setting: channels(4), ..p.steps[0].clone() };
    p.steps.insert(0, first);
    let out = page(&p, &s, false, 1);
    let of_eth1 = expected("present number").into_iter().filter(|l| l.contains(" eth1 ")).collect::<Vec<_>>();
    assert!(!of_eth1.is_empty());
    for line in of_eth1 {
        assert!(out.lines().any(|l| l == line), "{line}\n{out}");
    }
    for line in expected("interrupt").into_iter().filter(|l| !l.contains(" eth1 ")) {
        assert!(out.lines().any(|l| l == line), "{line}\n{out}");
    }
    // What is not known is not guessed.
    let mut unknown = s.clone();
    unknown.nics.iter_mut().for_each(|n| n.vectors.clear());
    let out = page(&p, &unknown, false, 1);
    assert!(out.contains(" no interrupt yet, ") && out.contains(" interrupt unknown, "), "{out}");
}

#[test]
fn nothing_to_do_is_one_line() {
    let s = edge3();
    let mut p = empty(&s);
    p.target = edge3_plan(&s).target;
    p.already = p.target.len();
    let out = plan::text(&p, Some(&s), &plan::PlanPageOptions::default(), &Style::plain(Some(80)));
    assert_eq!(out, "edge3: nothing to change (48 of 48 settings are as planned).\n");
    assert_eq!(diff::text(&p), "");
}

#[test]
fn unified_diff() {
    let s = edge3();
    let mut p = edge3_plan(&s);
    // One setting in the middle that holds already.
    p.steps.remove(20);
    golden("plan.diff", &diff::text(&p));
}

#[test]
fn shell_script() {
    let s = edge3();
    let text = script::text(&edge3_plan(&s), &s).unwrap();
    // The rest is the same in every script, and `script.rs` runs it.
    let fixed = concat!(include_str!("../../emit/src/script.sh"), include_str!("../../emit/src/script-main.sh"));
    golden("plan.sh", text.strip_suffix(fixed).expect("the fixed part ends the script"));
}

/// A name longer than its column shifts the following columns, and does not run into them.
#[test]
fn long_names_stand_apart() {
    let s = edge3();
    let mut p = edge3_plan(&s);
    p.target.clear();
    let like = p.steps.drain(..).next().unwrap();
    let sysctl = |value: &str| Setting::Sysctl { name: "net.core.netdev_budget_usecs".into(), value: value.into() };
    let feature = |on| Setting::Feature { dev: "eth1".into(), name: "tx-tcp-mangleid-segmentation".into(), on };
    for (from, setting) in [(feature(true), feature(false)), (sysctl("8000"), sysctl("4000"))] {
        p.target.push(setting.clone());
        p.steps.push(Step { from: Fact::Known(from), setting, ..like.clone() });
    }
    let out = plan::text(&p, Some(&s), &plan::PlanPageOptions::default(), &Style::plain(Some(80)));
    for line in
        ["~ tx-tcp-mangleid-segmentation  now  on   then off", "~ net.core.netdev_budget_usecs  now  8000   then 4000"]
    {
        assert!(out.lines().any(|l| l == line), "{line}\n{out}");
    }
}

#[test]
fn no_script_without_names() {
    let mut s = edge3();
    s.nics[1].vectors[3].names.clear();
    let p = edge3_plan(&edge3());
    let why = script::text(&p, &s).unwrap_err();
    assert!(why.contains("eth1 rx-3"), "{why}");
}

#[test]
fn names_of_both_kinds_where_channels_change() {
    use ringwise_knob::{IfRefused, Setting, Step, VectorName, live};
    let s = edge3();
    let mut p = empty(&s);
    for setting in [
        Setting::Channels { dev: "eth1".into(), rx: None, tx: None, combined: Some(4) },
        Setting::IrqCpus { dev: "eth1".into(), of: VectorName::Tx(2), cpus: set("4"), on: None },
    ] {
        let from = live(&s, &setting.address().unwrap());
        p.steps.push(Step {
            setting,
            from,
            rule: "A11".into(),
            reason: Reason::Text("a test".into()),
            source: "none".into(),
            interrupts_traffic: true,
            if_refused: IfRefused::PutBack,
            instead: Vec::new(),
        });
    }
    let text = script::text(&p, &s).unwrap();
    assert!(text.contains("channels 4 '' eth1 -l '' -L Combined:4 combined 4\n"), "{text}");
    assert!(text.contains("irq_cpus eth1 'eth1-TxRx-2 eth1-tx-2' 4\n"), "{text}");
    // The rollback restores everything that the channel change may have lost.
    let back = text.split("before() {").nth(1).unwrap();
    assert!(
        back.contains("channels 8 '' eth1 -l '' -L Combined:8 combined 8") && back.contains("weight 16 16"),
        "{back}"
    );
    assert!(back.contains("irq_cpus eth1 'eth1-TxRx-7 eth1-rx-7' 0-15"), "{back}");
}

/// A channel change removes interrupts, or the driver requests them again: none of them is pending.
#[test]
fn pending_interrupts_are_those_that_the_plan_keeps() {
    const HOST: &str = "lab-router16-newest/capture.tar.gz";
    let pending = |args: &[&str]| {
        let a = ringwise(HOST, &[&["plan"], args].concat());
        assert_eq!(a.status, Some(0), "{}", a.err);
        a.out.lines().find(|l| l.starts_with("Pending: ")).map(str::to_string)
    };
    assert_eq!(pending(&["eth0", "--goal", "rpc", "--allow-disruption"]), None);
    assert_eq!(pending(&["eth0", "--goal", "balanced", "--queues", "4", "--allow-disruption"]), None);
    let kept = pending(&["mq0", "--goal", "balanced"]);
    assert!(kept.as_ref().is_some_and(|l| l.starts_with("Pending: mq0: 3 interrupts are set as planned")), "{kept:?}");
}
