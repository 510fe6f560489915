//! RSS: tables, key, function, transform, hash fields and contexts.

use std::sync::Arc;

use crate::common::*;
use ringwise_apply::{Error, Outcome, Refusal, RunResult};
use ringwise_kfmt::{ethtool_ioctl, ethtool_nl};
use ringwise_knob::rss::{LETTERS, default, simulate};
use ringwise_knob::{IfRefused, Setting, compare, live};
use ringwise_model::{Fact, Rss, RssContext, Snapshot, Table};
use ringwise_testkit::sim::{At, Sim, SimulatedFault, Times, build};

const OLD: &str = "6.12.48";
const NEW: &str = "6.18.2";

/// eth0 igb, eth1 the test NIC with contexts, eth2 a device that accepts everything.
fn host_of(kernel: &str) -> Arc<Sim> {
    let build = build::host(8, 1).kernel(kernel).igb("eth0", 0, 8).mqnic("eth1", 0, 8).mqnic("eth2", 0, 8);
    let mut s = build.done();
    s.nics[2].driver = Fact::Known("ice".into());
    Arc::new(Sim::new(&s))
}

fn rss(sim: &Sim, dev: &str) -> Rss {
    sim.nic(dev).unwrap().rss.known().unwrap().clone()
}

fn context(dev: &str, context: u32, table: Option<&[u32]>) -> Setting {
    Setting::RssContext {
        dev: dev.into(),
        context,
        table: table.map(|t| t.iter().copied().cycle().take(128).collect()),
        key: None,
    }
}

fn hash(dev: &str, function: Option<&str>, key: Option<&str>, symmetric: Option<&str>) -> Setting {
    let own = |s: Option<&str>| s.map(str::to_string);
    Setting::RssHash { dev: dev.into(), function: own(function), key: own(key), symmetric: own(symmetric) }
}

fn fields(dev: &str, flow: &str, fields: &str) -> Setting {
    Setting::RssFields { dev: dev.into(), flow: flow.into(), fields: fields.into() }
}

fn words(dev: &str, table: Table) -> Setting {
    Setting::RssTable { dev: dev.into(), table: simulate(&table, 128, 8).unwrap() }
}

fn holds(now: &Snapshot, wanted: &[Setting]) {
    for s in wanted {
        assert!(compare(s, now).holds(), "{s:?}: {:?}", compare(s, now));
    }
}

fn why(out: &Outcome) -> (Option<i32>, String) {
    let f = out.failed.clone().unwrap();
    (f.errno, f.words)
}

#[test]
fn everything_is_written_read_back_and_rolled_back() {
    for kernel in [OLD, NEW] {
        let (sim, dir) = (host_of(kernel), Dir::new());
        let before = look(&sim);
        let key = "0123456789abcdef0123".repeat(4);
        let wanted = [
            words("eth0", Table::Weight { weights: vec![3, 1], start: 0 }),
            fields("eth0", "udp4", "sdfn"),
            words("eth1", Table::Equal { queues: 2, start: 6 }),
            hash("eth1", None, Some(&key), None),
            fields("eth1", "udp6", "sdfn"),
            context("eth1", 1, Some(&[4, 5])),
            hash("eth2", Some("xor"), Some(&key), Some("symmetric-xor")),
            context("eth2", 1, Some(&[0])),
            context("eth2", 2, Some(&[1])),
        ];
        let out = apply(&sim, &dir, &wanted).unwrap();
        assert_eq!((out.verdict, out.applied.len()), (RunResult::Applied, 9), "{kernel}: {:?}", out.failed);
        holds(&look(&sim), &wanted);
        let t = rss(&sim, "eth0").table;
        assert_eq!((t[95], t[96], t.iter().filter(|q| **q == 0).count()), (0, 1, 96));
        assert_eq!(rss(&sim, "eth1").contexts.known().unwrap()[&1].table[..3], [4, 5, 4]);
        // Each kernel through its own interface.
        let by_netlink = sim.log().iter().any(|l| l == "rss-set eth0");
        let by_ioctl = sim.log().iter().any(|l| l == "ETHTOOL_SRSSH eth0");
        assert_eq!((by_netlink, by_ioctl), (kernel == NEW, kernel == OLD), "{:#?}", sim.log());
        let again = apply(&sim, &dir, &wanted).unwrap();
        assert_eq!(again.verdict, RunResult::NothingToDo);

        let back = rollback(&sim, &dir, 1, &policy()).unwrap();
        assert!(back.failed.is_none(), "{:?}", back.failed);
        assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new(), "{kernel}");
        assert!(rss(&sim, "eth2").contexts.known().unwrap().is_empty());
        assert_eq!(rss(&sim, "eth2").symmetric, Fact::Known("none".into()));
    }
}

/// Fields that a device can hash of this flow type, besides the addresses.
fn more_fields(flow: &str) -> &'static str {
    match flow {
        "ether" => "m",
        "ip4" | "ip6" => "tsd",
        f if f.starts_with("gtp") => "sde",
        // Ports, or the index of the security association, which is in the same place.
        _ => "sdfn",
    }
}

#[test]
fn the_hash_fields_of_every_flow_type_are_set_and_rolled_back() {
    let flows: Vec<&str> = ethtool_ioctl::FLOW_TYPES.iter().map(|f| f.0).collect();
    for must in ["tcp4", "udp4", "sctp4", "ah4", "esp4", "ah-esp4", "tcp6", "udp6", "sctp6", "ah6", "esp6", "ah-esp6"] {
        assert!(flows.contains(&must), "{must}");
    }
    for kernel in [OLD, NEW] {
        // eth2 accepts any fields of any flow type.
        let mut s = look(&host_of(kernel));
        let Fact::Known(rss) = &mut s.nics[2].rss else { panic!() };
        rss.fields =
            flows.iter().map(|f| (f.to_string(), if *f == "ether" { "v" } else { "sd" }.to_string())).collect();
        let (sim, dir) = (Arc::new(Sim::new(&s)), Dir::new());
        let before = look(&sim);
        assert_eq!(rss_of(&before).fields.len(), flows.len(), "{kernel}: every flow type is read");

        let wanted: Vec<Setting> = flows.iter().map(|f| fields("eth2", f, more_fields(f))).collect();
        let out = apply(&sim, &dir, &wanted).unwrap();
        assert_eq!((out.verdict, out.applied.len()), (RunResult::Applied, flows.len()), "{kernel}: {:?}", out.failed);
        let now = look(&sim);
        holds(&now, &wanted);
        for f in &flows {
            assert_eq!(rss_of(&now).fields[*f], more_fields(f), "{kernel}: {f}");
            assert_ne!(rss_of(&before).fields[*f], more_fields(f), "{kernel}: {f} was changed");
        }
        let by_netlink = sim.log().iter().any(|l| l == "rss-set eth2");
        let by_ioctl = sim.log().iter().any(|l| l == "ETHTOOL_SRXFH eth2");
        assert_eq!((by_netlink, by_ioctl), (kernel == NEW, kernel == OLD), "{:#?}", sim.log());

        let back = rollback(&sim, &dir, 1, &policy()).unwrap();
        assert!(back.failed.is_none(), "{:?}", back.failed);
        assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new(), "{kernel}");
        assert_eq!(rss_of(&look(&sim)).fields, rss_of(&before).fields, "{kernel}");

        // Each flow type alone, with a write that fails: its fields are as before.
        for f in &flows {
            let dir = Dir::new();
            sim.forget_writes();
            sim.fault(SimulatedFault::Fail { at: At::Write(0), errno: 5, times: Times::Once });
            let out = apply(&sim, &dir, &[fields("eth2", f, more_fields(f))]).unwrap();
            assert_eq!(out.verdict, RunResult::PutBack, "{kernel}: {f}");
            assert_eq!(rss_of(&look(&sim)).fields[*f], rss_of(&before).fields[*f], "{kernel}: {f}");
        }
    }
}

fn rss_of(s: &Snapshot) -> &Rss {
    s.nics[2].rss.known().unwrap()
}

#[test]
fn a_failure_at_any_step_puts_all_of_it_back() {
    for kernel in [OLD, NEW] {
        let key = "ab".repeat(40);
        let wanted = [
            words("eth1", Table::Weight { weights: vec![1, 2], start: 0 }),
            hash("eth1", None, Some(&key), None),
            fields("eth1", "tcp4", "sd"),
            context("eth1", 1, Some(&[6, 7])),
            context("eth1", 2, Some(&[1, 2, 3])),
            channels("eth1", 8),
        ];
        for k in 0.. {
            let (sim, dir) = (host_of(kernel), Dir::new());
            // A context of another program, which is changed here and restored.
            sim.ethtool_x_new("eth1", &default(128, 3)).unwrap();
            let before = look(&sim);
            sim.forget_writes();
            sim.fault(SimulatedFault::Fail { at: At::Write(k), errno: 5, times: Times::Once });
            let out = apply(&sim, &dir, &wanted).unwrap();
            if out.verdict == RunResult::Applied {
                assert!(k >= 5, "{kernel}: {k} writes");
                break;
            }
            assert_eq!(out.verdict, RunResult::PutBack, "{kernel} at {k}: {:?}", out.put_back_incomplete);
            assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new(), "{kernel} at {k}");
            assert_eq!(rss(&sim, "eth1").contexts, before.nic("eth1").unwrap().rss.known().unwrap().contexts);
        }
    }
}

#[test]
fn contexts_come_back_with_their_numbers() {
    for kernel in [OLD, NEW] {
        let (sim, dir) = (host_of(kernel), Dir::new());
        for q in 0..3 {
            sim.ethtool_x_new("eth1", &[q; 128]).unwrap();
        }
        // 2 is free, 1 and 3 are taken.
        apply(&sim, &dir, &[context("eth1", 2, None)]).unwrap();
        let before = look(&sim);
        let gone: Vec<Setting> = [1, 3].map(|c| context("eth1", c, None)).into();
        let out = apply(&sim, &dir, &gone).unwrap();
        assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
        assert!(rss(&sim, "eth1").contexts.known().unwrap().is_empty());
        let back = rollback(&sim, &dir, 2, &policy()).unwrap();
        assert!(back.failed.is_none(), "{kernel}: {:?}", back.failed);
        assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
        let all: Vec<u32> = rss(&sim, "eth1").contexts.known().unwrap().keys().copied().collect();
        assert_eq!(all, [1, 3], "{kernel}");
    }
}

/// By ioctl the kernel chooses the number; ringwise reaches the requested one only within a limit.
#[test]
fn a_number_that_the_kernel_does_not_give_is_reported_and_nothing_is_left() {
    let (sim, dir) = (host_of(OLD), Dir::new());
    let out = apply(&sim, &dir, &[context("eth1", 100, Some(&[0]))]).unwrap();
    let text = "the kernel gave the new context the number 65 instead of 100; ringwise deleted it again";
    assert_eq!((out.verdict, why(&out)), (RunResult::PutBack, (None, text.to_string())));
    assert!(rss(&sim, "eth1").contexts.known().unwrap().is_empty());
    // Netlink accepts any number.
    let (sim, dir) = (host_of(NEW), Dir::new());
    assert_eq!(apply(&sim, &dir, &[context("eth1", 100, Some(&[0]))]).unwrap().verdict, RunResult::Applied);
}

#[test]
fn another_program_was_faster() {
    let (sim, dir) = (host_of(OLD), Dir::new());
    let request = request(&look(&sim), &[context("eth1", 1, Some(&[0]))]);
    sim.ethtool_x_new("eth1", &[3; 128]).unwrap();
    assert!(matches!(run(&sim, &dir, &request), Err(Error::Refused(ref r)) if matches!(**r, Refusal::Changed { .. })));
    assert_eq!(rss(&sim, "eth1").contexts.known().unwrap()[&1].table, [3; 128]);
}

/// Changes of channels that the kernel refuses because of a table or a context, in both directions.
#[test]
fn fewer_queues_than_tables_and_contexts_name() {
    for kernel in [OLD, NEW] {
        let (sim, dir) = (host_of(kernel), Dir::new());
        sim.ethtool_x("eth1", &simulate(&Table::Weight { weights: vec![0, 0, 0, 0, 1, 3], start: 0 }, 128, 8).unwrap())
            .unwrap();
        sim.ethtool_x_new("eth1", &simulate(&Table::Equal { queues: 2, start: 6 }, 128, 8).unwrap()).unwrap();
        sim.ethtool_x_new("eth1", &default(128, 2)).unwrap();
        assert!(sim.ethtool_l("eth1", 4).is_err());
        let before = look(&sim);
        let wish = Setting::RssTable {
            dev: "eth1".into(),
            table: simulate(&Table::Weight { weights: vec![3, 1], start: 2 }, 128, 4).unwrap(),
        };
        let out = apply(&sim, &dir, &[channels("eth1", 4), wish.clone()]).unwrap();
        assert_eq!(out.verdict, RunResult::Applied, "{kernel}: {:?}", out.failed);
        let now = rss(&sim, "eth1");
        holds(&look(&sim), &[wish]);
        let table = |c: u32| now.contexts.known().unwrap()[&c].table.clone();
        assert_eq!(table(1)[..4], [2, 3, 2, 3], "its queues are gone; those that are left take their entries");
        assert_eq!(table(2), default(128, 2));

        let back = rollback(&sim, &dir, 1, &policy()).unwrap();
        assert!(back.failed.is_none(), "{kernel}: {:?}", back.failed);
        assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new(), "{kernel}");
    }
}

#[test]
fn a_context_goes_only_after_the_channels_that_it_was_made_for() {
    let (sim, dir) = (host_of(OLD), Dir::new());
    sim.ethtool_l("eth1", 4).unwrap();
    let before = look(&sim);
    let wanted = [channels("eth1", 8), context("eth1", 1, Some(&[6, 7]))];
    let out = apply(&sim, &dir, &wanted).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    let back = rollback(&sim, &dir, 1, &policy()).unwrap();
    assert!(back.failed.is_none(), "{:?}", back.failed);
    assert_eq!(differing(&before, &look(&sim)), Vec::<String>::new());
    assert!(rss(&sim, "eth1").contexts.known().unwrap().is_empty());
}

#[test]
fn default_is_reset_and_no_longer_in_the_way() {
    for kernel in [OLD, NEW] {
        let (sim, dir) = (host_of(kernel), Dir::new());
        sim.ethtool_x("eth1", &[7; 128]).unwrap();
        assert!(sim.ethtool_l("eth1", 4).is_err());
        apply(&sim, &dir, &[words("eth1", Table::Default)]).unwrap();
        assert_eq!(rss(&sim, "eth1").table, default(128, 8));
        sim.ethtool_l("eth1", 4).unwrap();
        assert_eq!(rss(&sim, "eth1").table, default(128, 4), "{kernel}: it followed");
    }
}

/// Kernels since 6.17 compare only a quarter of the table to see whether it changes.
#[test]
fn a_change_in_the_last_entries_alone() {
    let (sim, dir) = (host_of(NEW), Dir::new());
    let mut table = default(128, 8);
    table[127] = 0;
    let wish = Setting::RssTable { dev: "eth1".into(), table: table.clone() };
    let out = apply(&sim, &dir, &[wish]).unwrap();
    assert_eq!((out.verdict, rss(&sim, "eth1").table), (RunResult::Applied, table));
    assert_eq!(sim.log(), ["rss-set eth1", "ETHTOOL_SRSSH eth1"]);
    // The same in a context, and back to the default.
    apply(&sim, &dir, &[context("eth1", 1, Some(&[1]))]).unwrap();
    let mut last = vec![1; 128];
    last[100] = 2;
    let out = apply(&sim, &dir, &[context("eth1", 1, Some(&last))]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    let out = apply(&sim, &dir, &[words("eth1", Table::Default)]).unwrap();
    assert_eq!((out.verdict, rss(&sim, "eth1").table), (RunResult::Applied, default(128, 8)));
}

#[test]
fn impossible_requests_are_reported_before_the_kernel_is_called() {
    for kernel in [OLD, NEW] {
        let (sim, dir) = (host_of(kernel), Dir::new());
        sim.forget_writes();
        let table = |t: Vec<u32>| Setting::RssTable { dev: "eth1".into(), table: t };
        let long =
            |c: u32, t: Vec<u32>| Setting::RssContext { dev: "eth1".into(), context: c, table: Some(t), key: None };
        for (wish, text) in [
            (table(vec![0; 64]), "64 entries, but the device's table has exactly 128"),
            (table(vec![8; 128]), "queue 8 does not exist: there are only queues 0-7"),
            (hash("eth1", None, Some("abcd"), None), "the key has 2 bytes, the device expects 40"),
            (hash("eth0", None, Some("abcd"), None), "the device has no hash key to set"),
            (hash("eth1", Some("md5"), None, None), "there is no hash function md5"),
            (hash("eth1", None, None, Some("symmetric")), "there is no input transform symmetric"),
            (long(1, vec![0; 5]), "5 entries, but the device's table has exactly 128"),
            (long(1, vec![9; 128]), "queue 9 does not exist: there are only queues 0-7"),
        ] {
            let now = look(&sim);
            let mut request = request(&now, std::slice::from_ref(&wish));
            if request.steps.is_empty() {
                request = request_with(&now, &wish);
            }
            let out = run(&sim, &dir, &request).unwrap();
            assert_eq!((out.verdict, why(&out)), (RunResult::PutBack, (None, text.to_string())), "{kernel}: {wish:?}");
            assert!(!out.changed);
        }
        assert_eq!(sim.log(), Vec::<String>::new());
        let refused = run(&sim, &dir, &request_with(&look(&sim), &context("eth0", 1, Some(&[0]))));
        assert!(
            matches!(refused, Err(Error::Refused(ref r)) if matches!(**r, Refusal::NotThere { .. })),
            "{refused:?}"
        );
    }
}

/// A step that `diff` does not return because the device does not have the setting.
fn request_with(now: &Snapshot, wish: &Setting) -> ringwise_apply::Request {
    let mut out = request(now, &[rfs(1 << 20)]);
    out.devices = now.nics.iter().map(|n| n.dev.clone()).collect();
    out.steps[0].setting = wish.clone();
    out.steps[0].from = live(now, &wish.address().unwrap());
    out
}

#[test]
fn refusals_of_drivers_keep_errno_and_words() {
    let refused = |kernel: &str, wish: Setting| {
        let (sim, dir) = (host_of(kernel), Dir::new());
        let now = look(&sim);
        let out = run(&sim, &dir, &request_if(&now, &[wish], IfRefused::Skip)).unwrap();
        assert_eq!(out.refused.len(), 1, "{:?}", out.failed);
        assert_eq!(differing(&now, &look(&sim)), Vec::<String>::new());
        (out.refused[0].failure.errno, out.refused[0].failure.meaning.clone())
    };
    let own = "the driver does not support this hash function, key or transform".to_string();
    let hashed = "the driver does not hash these fields for this flow type".to_string();
    for kernel in [OLD, NEW] {
        assert_eq!(refused(kernel, hash("eth1", Some("xor"), None, None)), (Some(95), own.clone()));
        assert_eq!(refused(kernel, hash("eth0", None, None, Some("symmetric-xor"))), (Some(95), own.clone()));
        assert_eq!(refused(kernel, fields("eth0", "tcp4", "s")), (Some(22), hashed.clone()));
    }
}

#[test]
fn the_transform_stays_when_a_table_is_written() {
    for kernel in [OLD, NEW] {
        let (sim, dir) = (host_of(kernel), Dir::new());
        apply(&sim, &dir, &[hash("eth2", None, None, Some("symmetric-or-xor"))]).unwrap();
        apply(&sim, &dir, &[words("eth2", Table::Equal { queues: 3, start: 1 })]).unwrap();
        assert_eq!(rss(&sim, "eth2").symmetric, Fact::Known("symmetric-or-xor".into()), "{kernel}");
        apply(&sim, &dir, &[hash("eth2", None, None, Some("none"))]).unwrap();
        assert_eq!(rss(&sim, "eth2").symmetric, Fact::Known("none".into()), "{kernel}");
    }
}

#[test]
fn igb_loses_the_table_with_the_channels_but_neither_fields_nor_anything_else() {
    let (sim, dir) = (host_of(OLD), Dir::new());
    apply(
        &sim,
        &dir,
        &[words("eth0", Table::Weight { weights: vec![3, 1], start: 0 }), fields("eth0", "udp4", "sdfn")],
    )
    .unwrap();
    let before = look(&sim);
    let out = apply(&sim, &dir, &[channels("eth0", 4)]).unwrap();
    assert_eq!(out.verdict, RunResult::Applied, "{:?}", out.failed);
    let now = look(&sim);
    let [a, b] = [&before, &now].map(|s| s.nic("eth0").unwrap().rss.known().unwrap().clone());
    assert_eq!((a.table, a.fields), (b.table, b.fields));
}

#[test]
fn contexts_that_no_kernel_lists_are_unknown_and_left_alone() {
    let (sim, dir) = (host_of("6.1.100"), Dir::new());
    sim.ethtool_x_new("eth1", &[5; 128]).unwrap();
    let found = look(&sim).nic("eth1").unwrap().rss.known().unwrap().contexts.clone();
    assert!(found.unread().unwrap().why.contains("cannot list them"), "{found:?}");
    let refused = run(&sim, &dir, &request_with(&look(&sim), &context("eth1", 2, Some(&[0]))));
    assert!(matches!(refused, Err(Error::Refused(ref r)) if matches!(**r, Refusal::Unreadable { .. })), "{refused:?}");
    let all = rss(&sim, "eth1").contexts;
    assert_eq!(all, Fact::Known([(1, RssContext { table: vec![5; 128], key: all_key(&all) })].into()));
}

fn all_key(all: &Fact<std::collections::BTreeMap<u32, RssContext>>) -> Option<String> {
    all.known().unwrap()[&1].key.clone()
}

/// Crates that do not depend on each other use the same letters and names of flow types.
#[test]
fn the_same_letters_and_flow_types_everywhere() {
    for c in LETTERS.chars() {
        assert_eq!(ethtool_ioctl::fields::letters(ethtool_ioctl::fields::mask(&c.to_string()).unwrap()), c.to_string());
    }
    assert_eq!(ethtool_ioctl::fields::letters(ethtool_ioctl::fields::mask(LETTERS).unwrap()), LETTERS);
    assert_eq!(ethtool_ioctl::FLOW_TYPES.len(), ethtool_nl::ids::FLOWS.len());
}
