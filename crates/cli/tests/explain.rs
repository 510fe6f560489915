//! `ringwise explain` on recorded hosts: predictions, documents, error messages.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::common::schema::check;
use crate::common::*;
use serde_json::Value;

fn run(args: &[&str], input: &str) -> Output {
    let mut c = Command::new(env!("CARGO_BIN_EXE_ringwise"));
    let mut child = c.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that refuses its arguments does not read stdin.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn text(o: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&o.stdout), String::from_utf8_lossy(&o.stderr))
}

fn host(name: &str) -> String {
    fixtures().into_iter().find(|f| f.0 == name).unwrap().1.display().to_string()
}

fn holds(o: &Output) -> Value {
    let doc: Value = serde_json::from_slice(&o.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(o)));
    let path = root().join("schemas/ringwise.explain.v1.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let wrong = check(&schema, &doc);
    assert!(wrong.is_empty(), "{wrong:#?}\n{doc:#}");
    doc
}

const FLOW: &str = "66.9.149.187:2794-161.142.100.80:1766/tcp";

#[test]
fn every_interface_of_every_host_has_an_answer() {
    let mut known = 0;
    for (name, file) in fixtures() {
        let file = file.display().to_string();
        let o = run(&["show", "-j", "--from", &file], "");
        let s: Value = serde_json::from_slice(&o.stdout).unwrap();
        for (at, i) in s["interfaces"].as_array().unwrap().iter().enumerate() {
            let dev = i["name"].as_str().unwrap();
            let o = run(&["explain", FLOW, dev, "-j", "--from", &file], "");
            assert_eq!(o.status.code(), Some(0), "{name} {dev}: {}", text(&o));
            let doc = holds(&o);
            let steering = &doc["directions"][0]["arrival"]["steering"];
            match (steering["queue"].as_u64(), steering["why_not_code"].as_str()) {
                (Some(_), _) => known += 1,
                // Foreign trees and old recordings contain no table and no RSS key; vmxnet3 reports none.
                (None, Some(code)) => assert!(
                    ["table_unread", "key_unread", "host_key_unread", "key_not_reported", "hash_function_unread"]
                        .contains(&code),
                    "{name} {dev}: {steering}"
                ),
                (None, None) => panic!("{name} {dev}: neither a queue nor why not: {steering}"),
            }
            if at > 0 {
                continue;
            }
            let o = run(&["explain", "--synthetic", "count=200,zipf=1", dev, "-j", "--from", &file], "");
            assert_eq!(o.status.code(), Some(0), "{name} {dev}: {}", text(&o));
            holds(&o);
            let t = run(&["explain", FLOW, dev, "--from", &file], "");
            assert!(text(&t).contains("Cannot be known from here"), "{name} {dev}: {}", text(&t));
        }
    }
    assert!(known >= 25, "{known}");
}

#[test]
fn lines_of_other_programs_one_by_one() {
    let file = host("lab-small2-6.12");
    let input = "# flows\n66.9.149.187:2794-161.142.100.80:1766/tcp\nESTAB 0 0 10.0.0.2:22 10.0.0.1:50000\n\
                 udp 17 29 src=10.0.0.1 dst=10.0.0.2 sport=5 dport=53 src=10.0.0.2 dst=10.0.0.1 sport=53 dport=5\n";
    let o = run(&["explain", "-", "eth0", "--plain", "--from", &file], input);
    let out = text(&o);
    let flows: Vec<&str> = out.lines().skip(1).map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(flows, [FLOW, "10.0.0.1:50000-10.0.0.2:22/tcp", "10.0.0.1:5-10.0.0.2:53/udp"], "{out}");
    assert!(out.lines().skip(1).all(|l| l.split(' ').count() == 5), "{out}");
    let o = run(&["explain", "-", "eth0", "--from", &file], "a line\n");
    assert_eq!(o.status.code(), Some(1));
    assert!(text(&o).contains("standard input, line 1: flow: found"), "{}", text(&o));
}

#[test]
fn what_if_and_balance() {
    let file = host("lab-router16-6.12");
    let words = "count=500,zipf=1.0,proto=tcp";
    let base = ["explain", "--synthetic", words, "mq0", "-j", "--from", &file];
    let now = holds(&run(&base, ""));
    assert_eq!(now["as_if"], Value::Null);
    let doc = holds(&run(&[&base[..], &["--what-if", "rss.table=\"equal 2\"", "--balance", "1.02"]].concat(), ""));
    assert_eq!(doc["now"], now["now"]);
    let used = |d: &Value| d["queues_used"].as_u64().unwrap();
    assert_eq!((used(&doc["as_if"]), used(&doc["now"])), (2, 8));
    let table = doc["balance"]["table"].as_array().unwrap();
    assert_eq!(table.len(), 128);
    assert!(doc["balance"]["after"].as_f64().unwrap() < doc["balance"]["before"].as_f64().unwrap());
    // The proposed table, checked with `--what-if`, has the predicted effect.
    let q: Vec<String> = table.iter().map(|q| q.to_string()).collect();
    let set = format!("rss.table=[{}]", q.join(","));
    let again = holds(&run(&[&base[..], &["--what-if", &set]].concat(), ""));
    let (said, is) =
        (doc["balance"]["after"].as_f64().unwrap(), again["as_if"]["evenness"]["max_to_mean"].as_f64().unwrap());
    assert!((said - is).abs() < 1e-9, "{said} {is}");
    let o = run(
        &["explain", "--synthetic", words, "mq0", "--balance", "--from", &file, "--what-if", "channels.combined=4"],
        "",
    );
    assert!(
        text(&o).contains("Next: ringwise plan --goal GOAL mq0 --set 'mq0.channels.combined=4' --set 'mq0.rss.table=["),
        "{}",
        text(&o)
    );
    assert!(text(&o).contains("\nbalance with --what-if: "), "{}", text(&o));
    // The heaviest of 100 flows is more than an eighth of the packets, but less than a quarter.
    let few = ["explain", "--synthetic", "count=100,zipf=1.0", "mq0", "--from", &file];
    let page = text(&run(&few, ""));
    assert!(page.contains("\nfloor   1.54, set by the heaviest flow: ") && !page.contains("--what-if"), "{page}");
    let page = text(&run(&[&few[..], &["--what-if", "channels.combined=4"]].concat(), ""));
    for line in [
        "mq0  mqnic  8 queues, 128 entries ",
        "\nfloor   1.54 now, set by the heaviest flow: ",
        "\n        1.00 with --what-if: no flow is heavier ",
        ", queue 5 now, queue 1 with --what-if\n",
        "\nadvice  with --what-if: udp4 is hashed ",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    // The CPU belongs to the present numbers, so a queue that the assumed state does not have keeps it.
    assert!(page.contains("\n    7     4     0 "), "{page}");
    for (what, words) in [
        ("rings.rx=512", "does not decide where flows go"),
        ("rss.table=\"equal 99\"", "queue"),
        ("nonsense=1", "nonsense"),
    ] {
        let o = run(&["explain", FLOW, "mq0", "--from", &file, "--what-if", what], "");
        assert_ne!(o.status.code(), Some(0), "{what}");
        assert!(text(&o).contains(words), "{what}: {}", text(&o));
    }
}

/// A flow whose entry is unknown is skipped and reported; if no entry is known, nothing is proposed.
#[test]
fn a_proposal_without_some_flows() {
    let file = host("lab-router16-6.12");
    let with = |input: &str| run(&["explain", "-", "mq0", "-j", "--balance", "--from", &file], input);
    let known: String = (1..200).map(|p| format!("10.0.0.1:{p}-10.0.0.2:80/tcp 10\n")).collect();
    let doc = holds(&with(&format!("{known}[2001:db8::1]:5-[2001:db8::2]:6/sctp 10\n")));
    assert!(
        doc["notes"].to_string().contains("0.5 % of the packets are of flows whose entry is not known"),
        "{}",
        doc["notes"]
    );
    assert_eq!(doc["now"]["undecided"]["packets"], 10);
    assert!(doc["balance"]["after"].as_f64().unwrap() <= doc["balance"]["before"].as_f64().unwrap());
    let o = with("[2001:db8::1]:5-[2001:db8::2]:6/sctp 10\n");
    assert_eq!(o.status.code(), Some(1));
    assert!(text(&o).contains("no flow's entry is known"), "{}", text(&o));
}

/// Little-endian pcap of Ethernet frames.
pub(crate) fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let w = |n: u32| n.to_le_bytes();
    let mut f = [w(0xa1b2_c3d4), w(0x0004_0002), w(0), w(0), w(65_535), w(1)].concat();
    for p in packets {
        f.extend([w(1), w(2), w(p.len() as u32), w(p.len() as u32)].concat());
        f.extend(p);
    }
    f
}

/// An Ethernet frame of TCP from 10.0.0.1 to 10.0.0.`last`.
pub(crate) fn tcp_to(last: u8) -> Vec<u8> {
    let mut p = vec![0; 12];
    p.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, last, 4, 0, 0, 80]);
    p.resize(60, 0);
    p
}

#[test]
fn captures_whole_cut_and_wrong() {
    let dir = std::env::temp_dir().join(format!("ringwise-explain-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let host = host("lab-router16-6.12");
    let mut arp = vec![0; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    let whole = pcap(&[tcp_to(1), tcp_to(2), tcp_to(2), arp]);
    let file = dir.join("a.pcap").display().to_string();
    let with = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        run(&["explain", "--pcap", &file, "mq0", "-j", "--from", &host], "")
    };
    let doc = holds(&with(&whole));
    assert_eq!(doc["now"]["total"]["packets"], 3);
    assert_eq!(doc["now"]["total"]["flows"], 2);
    assert!(doc["notes"][0].as_str().unwrap().contains("ARP"), "{}", doc["notes"]);
    let doc = holds(&with(&whole[..whole.len() - 70]));
    assert!(doc["notes"].to_string().contains("cut off"), "{}", doc["notes"]);
    for (bytes, words) in [
        (&whole[..30], "ends before the first packet"),
        (&whole[..24], "no packet"),
        (&b"hello, this is no capture at all"[..], "pcap or pcapng"),
    ] {
        let o = with(bytes);
        assert_eq!(o.status.code(), Some(1));
        assert!(text(&o).contains(words), "{}", text(&o));
    }
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn documents_of_watch_per_flow() {
    let file = host("lab-router16-6.12");
    let flow = |queue: u32, port: u16, packets: u64| {
        format!(
            "{{\"queue\":{queue},\"looked_at\":{packets},\"bytes\":0,\"unreadable\":0,\"flows\":[{{\"protocol\":6,\
             \"from\":\"10.0.0.1\",\"to\":\"10.0.0.2\",\"from_port\":{port},\"to_port\":80,\"looked_at\":{packets},\"over\":1,\
             \"bytes\":1000}}]}}"
        )
    };
    let o = run(&["explain", "-", "mq0", "--plain", "--from", &file], "10.0.0.1:5-10.0.0.2:80/tcp\n");
    let queue: u32 = text(&o).lines().nth(1).unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let head = "{\"schema\":\"ringwise.flows\",\"version\":1,\"one_in\":4,\"queues\":[";
    let doc = format!("{head}{},{{\"queue\":null,\"flows\":[{{\"ethertype\":2054}}]}}]}}\n", flow(queue, 5, 11));
    let found = holds(&run(&["explain", "-", "mq0", "-j", "--from", &file], &format!("{doc}{doc}")));
    assert_eq!(found["now"]["total"]["packets"], 80, "(11 - 1) looked at, one in 4, twice");
    assert_eq!(found["counted"], true);
    assert!(found["notes"].to_string().contains("2 of 2 flows arrived on the predicted queue"), "{}", found["notes"]);
    for (line, words) in [
        ("{\"schema\":\"ringwise.watch\",\"version\":1}\n", "expected ringwise.flows"),
        ("{nothing\n", "line 1: not JSON"),
    ] {
        let o = run(&["explain", "-", "mq0", "--from", &file], line);
        assert_eq!(o.status.code(), Some(1));
        assert!(text(&o).contains(words), "{}", text(&o));
    }
}

#[test]
fn usage() {
    let file = host("lab-router16-6.12");
    for (args, words) in [
        (&["explain"][..], "name a flow"),
        (&["explain", "10.0.0.1", "eth0"][..], "PROTOCOL"),
        (&["explain", FLOW, "nosuch", "--from", &file][..], "there is no interface \"nosuch\""),
        (&["explain", "--synthetic", "count=x", "mq0", "--from", &file][..], "--synthetic"),
        (&["explain", "--sockets", "mq0", "--from", &file][..], "a recording contains no connections"),
        (&["explain", "--synthetic", "count=5", "--from", &file][..], "name the interface"),
        (&["explain", FLOW, "mq0", "--balance", "--from", &file][..], "--balance needs many flows"),
    ] {
        let o = run(args, "");
        assert!(matches!(o.status.code(), Some(1 | 2)), "{args:?}");
        assert!(text(&o).contains(words), "{args:?}: {}", text(&o));
    }
}

#[test]
fn as_if_by_another_queue_and_with_a_tag() {
    let file = host("lab-router16-6.12");
    let base = ["explain", FLOW, "mq0", "--from", &file];
    let now = holds(&run(&[&base[..], &["-j"]].concat(), ""));
    let doc = holds(&run(&[&base[..], &["-j", "--if-queue", "6", "--vlan", "5"]].concat(), ""));
    let a = |d: &Value| d["directions"][0]["arrival"].clone();
    assert_eq!((a(&doc)["steering"]["by"].as_str(), a(&doc)["landing"]["queue"].as_u64()), (Some("asked"), Some(6)));
    assert_eq!(a(&doc)["steering"]["hash"], a(&now)["steering"]["hash"]);
    assert_ne!(a(&doc)["landing"]["irq"], a(&now)["landing"]["irq"]);
    let o = run(&[&base[..], &["--if-queue", "6"]].concat(), "");
    assert!(text(&o).contains("6, as requested") && text(&o).contains("mq0 q6"), "{}", text(&o));
    let plain = text(&run(&[&base[..], &["--if-queue", "6", "--plain"]].concat(), ""));
    assert_eq!(plain.lines().nth(1).unwrap().split(' ').nth(1), Some("6"), "{plain}");
    for (words, what) in [
        (&["--if-queue", "64"][..], "has the receive queues 0 to 7"),
        (&["--vlan", "4095"][..], "4095"),
        (&["--if-queue", "1", "--observe", "1s"][..], "--observe"),
    ] {
        let o = run(&[&base[..], words].concat(), "");
        assert_eq!(o.status.code(), Some(2), "{words:?}");
        assert!(text(&o).contains(what), "{words:?}: {}", text(&o));
    }
    let open = run(&["explain", "10.0.0.1-10.0.0.2:80/tcp", "mq0", "--if-queue", "1", "--from", &file], "");
    assert!(text(&open).contains("--if-queue works with one flow"), "{}", text(&open));
}

#[test]
fn a_drawing() {
    let file = host("lab-router16-6.12");
    let o = run(&["explain", FLOW, "mq0", "--svg", "-", "--from", &file][..], "");
    let svg = String::from_utf8(o.stdout).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("queue "), "{svg}");
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
}

/// Cores are numbered over the host, as in `show`; the kernel's `core_id` repeats in each package.
#[test]
fn cores_have_the_numbers_of_show() {
    let file = host("lab-router16-6.12");
    let page = text(&run(&["explain", FLOW, "mq2", "--if-queue", "0", "--from", &file], ""));
    let line = page.lines().find(|l| l.contains("interrupt") && l.contains("-> CPU ")).unwrap();
    let after =
        |word: &str| line.split(word).nth(1).unwrap().split_whitespace().next().unwrap().parse::<u32>().unwrap();
    assert_eq!(after(" node "), 1, "{line}");
    // Two threads a core: CPUs 8 and 9 are core 4.
    assert_eq!(after(" core "), after("-> CPU ") / 2, "{line}");
}

#[test]
fn rules_that_were_not_recorded_are_unknown() {
    let file = host("lab-router3-6.12");
    let page = text(&run(&["explain", FLOW, "eth0", "--from", &file], ""));
    assert!(page.contains("steering rules unknown") && page.contains("ETHTOOL_GRXCLSRLCNT"), "{page}");
    assert!(!page.contains("no steering rule matches"), "{page}");
}

#[test]
fn a_recording_without_the_hash_key_proposes_what_to_do() {
    let file = host("lab-router16-6.12");
    let page = text(&run(&["explain", FLOW, "eth1", "--from", &file], ""));
    assert!(
        page.contains("Recording: ringwise 0.1.0 made this recording. It recorded less than this version"),
        "{page}"
    );
    // igb's key has 40 bytes.
    let key = vec!["6d"; 40].join(":");
    let lines: Vec<&str> = page.lines().collect();
    let next = lines.windows(2).filter(|two| two[0].starts_with("Next, ") && two[0].ends_with(':'));
    let commands = next.filter_map(|two| two[1].strip_prefix("  ringwise "));
    let commands: Vec<String> = commands.map(|command| command.replace("KEY", &key)).collect();
    assert_eq!(commands.len(), 2, "{page}");
    for command in commands {
        let page = text(&run(&command.split(' ').collect::<Vec<_>>(), ""));
        assert!(page.contains("-> CPU ") && !page.contains("\nNext"), "{page}");
    }
    let many = text(&run(&["explain", "--synthetic", "count=100", "eth1", "--from", &file], ""));
    let next =
        "Next: add --what-if rss.key=KEY, with the KEY that sysctl -n net.core.netdev_rss_key prints on that host\n";
    assert!(many.contains(next) && many.contains("Recording: ringwise 0.1.0"), "{many}");
}

/// As the matrix of `show`, it names the CPU that takes the interrupt now.
#[test]
fn a_pending_interrupt_names_both_cpus() {
    let file = host("lab-router16-newest");
    let explain = |queue: &str, more: &[&str]| {
        run(&[&["explain", FLOW, "eth0", "--if-queue", queue, "--from", &file], more].concat(), "")
    };
    let page = text(&explain("6", &[]));
    assert!(page.contains("interrupt 50 -> CPU 0 (pending, now on CPU 2)   node 0"), "{page}");
    let landing = |queue| holds(&explain(queue, &["-j"]))["directions"][0]["arrival"]["landing"].clone();
    let pending = landing("6");
    assert_eq!((&pending["cpu"]["cpu"], &pending["pending_on"]), (&0.into(), &"2".into()), "{pending}");
}
