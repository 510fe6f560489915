//! What `show` prints for hand-made hosts.

use std::time::Duration;

use crate::common::*;
use ringwise_model::*;
use ringwise_render::{show, table};
use ringwise_text::Style;

fn one(s: &Snapshot, dev: &str, width: Option<usize>) -> String {
    show::devices(s, &[s.nic(dev).unwrap()], &Style::plain(width))
}

fn within(text: &str, width: usize) {
    for l in text.lines() {
        assert!(l.chars().count() <= width, "{} columns: {l}", l.chars().count());
    }
}

#[test]
fn sixteen_cpus_at_80_columns() {
    let out = one(&edge3(), "eth1", Some(80));
    within(&out, 80);
    golden("show-eth1.txt", &out);
    golden("show-eth3-down.txt", &one(&edge3(), "eth3", Some(80)));
}

#[test]
fn ascii_and_verbose() {
    let s = edge3();
    let style = Style { ascii: true, verbose: 1, raw: true, ..Style::plain(Some(100)) };
    let out = show::devices(&s, &[s.nic("eth1").unwrap()], &style);
    assert!(out.is_ascii());
    golden("show-eth1-ascii-v.txt", &out);
}

#[test]
fn sixtyfour_cpus_fold_at_80_columns() {
    let out = one(&big64(), "eth0", Some(80));
    within(&out, 80);
    assert!(out.contains("·(16)"), "{out}");
    golden("show-64-80.txt", &out);
    golden("show-64-120.txt", &one(&big64(), "eth0", Some(120)));
}

#[test]
fn not_on_a_terminal_nothing_is_folded() {
    let out = one(&big64(), "eth0", None);
    assert!(!out.contains("·("), "{out}");
    golden("show-64-file.txt", &out);
}

#[test]
fn two_hundred_and_fifty_six_cpus_are_a_list() {
    let out = one(&epyc256(), "ens1f0", Some(80));
    within(&out, 80);
    assert!(out.contains("TxRx-1   × CPU 8    node 0 core 4  L3 0") || out.contains("CPU 8"), "{out}");
    golden("show-256-80.txt", &out);
}

#[test]
fn several_are_compared() {
    let s = edge3();
    let nics = [s.nic("eth1").unwrap(), s.nic("eth2").unwrap()];
    let out = show::devices(&s, &nics, &Style::plain(Some(80)));
    golden("show-compare.txt", &out);
}

#[test]
fn one_line_each() {
    let s = edge3();
    let out = table::interfaces(&s, &Default::default(), false, &Style::plain(Some(80)));
    within(&out, 80);
    golden("interfaces.txt", &out);
}

#[test]
fn isolated_offline_and_silent() {
    let mut s = edge3();
    s.topology.online = set("0-14");
    s.topology.cpus.remove(&CpuId(15));
    s.topology.isolated = Fact::Known(set("4-7"));
    let n = s.nics.iter_mut().find(|n| n.dev.name == "eth1").unwrap();
    n.channels = Fact::late("channels-get eth1", Duration::from_secs(2));
    n.unread.push(Unread::late("channels-get eth1", Duration::from_secs(2)));
    n.vectors[3].effective = Fact::unknown("/proc/irq/233/effective_affinity_list", "needs root");
    let out = one(&s, "eth1", Some(80));
    assert!(out.contains("no answer within 2 s"));
    golden("show-isolated.txt", &out);
}

/// CPUs of a host with 256 of which the others are not there.
#[test]
fn cpu_numbers_of_three_digits_keep_a_gap() {
    let on = set("128-223");
    let mut t = topology(2, 64, 2, 8);
    (t.online, t.present) = (on.clone(), Fact::Known(on.clone()));
    t.cpus.retain(|c, _| on.contains(*c));
    let cpus: Vec<u32> = (0..8).map(|q| 128 + q * 12).collect();
    let s = host(t, vec![nic("eth0", 1, "ice", 1, &cpus, &on)]);
    let page = one(&s, "eth0", None);
    let head = page.lines().find(|l| l.starts_with("CPU ")).unwrap();
    let numbers: Vec<String> = head.split_whitespace().skip(1).map(str::to_string).collect();
    let want: Vec<String> = (128..224).map(|c| c.to_string()).chain(["affinity".into()]).collect();
    assert_eq!(numbers, want);
}

#[test]
fn queues_that_only_the_driver_counts_are_not_0() {
    let mut s = edge3();
    let n = s.nics.iter_mut().find(|n| n.name() == "eth1").unwrap();
    let queues = ringwise_text::queues(n);
    let why = Unread::new("/sys/class/net/eth1/queues", Some(13), "permission denied").of(Subject::Queues);
    (n.rx_queues, n.tx_queues, n.unread) = (Vec::new(), Vec::new(), vec![why]);
    assert_eq!(ringwise_text::queues(n), queues, "as the driver reports them");
    n.channels = Fact::Absent;
    assert_eq!(ringwise_text::queues(n), "queues unknown");
}
