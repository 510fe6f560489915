//! Small and short loads on 127.0.0.1. Only lower bounds of times are asserted.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::*;
use crate::side::{Responder, Sink};

const LOCAL: Option<std::net::IpAddr> = Some(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

fn answering(protocol: Protocol, delay_us: u32) -> LoadService {
    answer(&Responder { protocol, bind: LOCAL, threads: 1, delay_us, ..Responder::default() }).unwrap()
}

fn group(protocol: Protocol, pattern: Pattern, to: &[SocketAddr]) -> LoadGroup {
    LoadGroup { protocol, pattern, size_bytes: 100, threads: 1, flows: 1, to: to.to_vec(), ..LoadGroup::default() }
}

fn once(g: LoadGroup, ms: u64) -> Result<LoadResult, LoadError> {
    let load = LoadGroups {
        groups: vec![g],
        warmup: Duration::from_millis(20),
        time: Duration::from_millis(ms),
        ..LoadGroups::default()
    };
    run(&load, &AtomicBool::new(false)).map(|mut r| r.remove(0))
}

#[test]
fn requests_are_answered() {
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        let service = answering(protocol, 0);
        for (pattern, per_s, threads, flows, skew, size) in [
            (Pattern::Rr, None, 1, 1, 0.0, 100),
            (Pattern::Rr, None, 2, 5, 1.0, 5000),
            (Pattern::Burst(4), None, 2, 2, 0.0, 64),
            (Pattern::Rr, Some(500.0), 2, 6, 1.2, 64),
            (Pattern::Burst(4), Some(200.0), 1, 1, 0.0, 30_000),
        ] {
            let g =
                LoadGroup { threads, flows, skew, per_s, size_bytes: size, ..group(protocol, pattern, service.at()) };
            let r = once(g.clone(), 200).unwrap();
            let l = r.latency.clone().unwrap();
            assert_eq!(
                (r.unit, l.open_loop, r.lost_percent),
                (Unit::Transactions, per_s.is_some(), Some(0.0)),
                "{g:?} {r:?}"
            );
            assert!(l.count > 0 && l.p50_us > 0.0 && r.done_per_s > 0.0, "{r:?}");
            assert_eq!(r.bits_per_s, r.done_per_s * f64::from(size) * 16.0);
            assert!(r.busiest_thread_percent.is_some());
            if let Some(rate) = per_s {
                // All requests that were intended in the interval, whenever they were sent: exact, except for rounding.
                assert!(l.count.abs_diff((rate * 0.2) as u64) <= u64::from(threads), "{r:?}");
            }
        }
        let taken = service.stop();
        assert!(taken[0].packets > 0 && taken[0].bytes >= taken[0].packets * 64, "{taken:?}");
        assert!(taken[0].cpu_ns > 0 && taken[0].dropped == (protocol == Protocol::Udp).then_some(0));
    }
}

/// Checks the harness: an added delay is measured completely.
#[test]
fn an_injected_delay_is_measured() {
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        let service = answering(protocol, 20_000);
        for per_s in [None, Some(200.0)] {
            let g = LoadGroup { per_s, ..group(protocol, Pattern::Rr, service.at()) };
            let l = once(g, 300).unwrap().latency.unwrap();
            assert!(l.p50_us >= 20_000.0 * 0.996, "{l:?}");
            assert!(l.count > 0, "{l:?}");
        }
    }
}

/// A server that does nothing for 200 ms every second must be visible in the latencies.
#[test]
fn a_stall_shows_at_intended_times_and_hides_without() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let end = over.clone();
    let thread = std::thread::spawn(move || {
        let (mut buffer, mut first) = ([0; 2048], None);
        while !end.load(Ordering::Relaxed) {
            let Ok((n, from)) = server.recv_from(&mut buffer) else {
                first = None;
                continue;
            };
            let begun = *first.get_or_insert_with(Instant::now);
            if begun.elapsed() > Duration::from_millis(300) {
                std::thread::sleep(Duration::from_millis(200));
                first = Some(Instant::now() + Duration::from_secs(3600));
            }
            buffer[3] = packet::ANSWER;
            server.send_to(&buffer[..n], from).unwrap();
        }
    });
    let open = LoadGroup { per_s: Some(1000.0), ..group(Protocol::Udp, Pattern::Rr, &[at]) };
    let open = once(open, 1000).unwrap().latency.unwrap();
    // 200 of 1,000 were intended during the stall, evenly: a tenth of all waited 100 ms or more, 1 in 100 nearly 200.
    // On a busy machine some are never sent, which the result reports, and the others wait longer.
    assert!(open.count > 500 && open.p90_us >= 50_000.0 && open.p99_us >= 150_000.0, "{open:?}");
    assert!(open.max_us >= 199_000.0);
    std::thread::sleep(Duration::from_millis(60));
    let closed = once(group(Protocol::Udp, Pattern::Rr, &[at]), 1000).unwrap().latency.unwrap();
    over.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    // One request met the stall. (The others may be slow for other reasons.)
    assert!(closed.max_us >= 200_000.0 && closed.count > 1, "{closed:?}");
}

/// No thread can send a request every 20 ns.
#[test]
fn a_generator_that_cannot_keep_up_reports_it() {
    let service = answering(Protocol::Udp, 0);
    let g = LoadGroup { per_s: Some(5e7), ..group(Protocol::Udp, Pattern::Rr, service.at()) };
    let r = once(g, 1200).unwrap();
    assert!(r.sent_per_s > 0.0 && r.sent_per_s < 2.5e7 && r.lost_percent.is_some(), "{r:?}");
    assert!(r.trouble.as_ref().is_some_and(|t| t.contains("the generator was the limit")), "{r:?}");
    assert!(r.latency.is_some_and(|l| l.p50_us >= 1000.0), "from the intended time");
    // Waiting for a time does not count as work, and sending does.
    let sink = sink(&Sink { protocol: Protocol::Udp, bind: LOCAL, threads: 1, cpus: vec![] }).unwrap();
    let g = LoadGroup { per_s: Some(10_000.0), ..group(Protocol::Udp, Pattern::Send, sink.at()) };
    let busy = once(g, 200).unwrap().busiest_thread_percent.unwrap();
    assert!(busy > 0.0, "{busy}");
}

#[test]
fn what_is_never_answered_is_lost_and_refusals_keep_their_errno() {
    let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = deaf.local_addr().unwrap();
    let g = LoadGroup { per_s: Some(100.0), ..group(Protocol::Udp, Pattern::Rr, &[at]) };
    let r = once(g.clone(), 100).unwrap();
    assert!(r.sent_per_s > 0.0, "{r:?}");
    assert_eq!((r.lost_percent, r.done_per_s, r.latency), (Some(100.0), 0.0, None));
    drop(deaf);
    let why = once(g, 100).unwrap_err().to_string();
    assert!(why.contains("nothing got through") && why.contains("ECONNREFUSED"), "{why}");
    let why = once(group(Protocol::Tcp, Pattern::Rr, &[at]), 100).unwrap_err().to_string();
    assert!(why.contains("connect to 127.0.0.1:") && why.contains("ECONNREFUSED"), "{why}");
    let why =
        once(LoadGroup { cpus: vec![8190], ..group(Protocol::Udp, Pattern::Rr, &[at]) }, 100).unwrap_err().to_string();
    assert!(why.contains("EINVAL") && why.contains("CPU 8190"), "{why}");
}

/// A server that answers each request twice, but never the third one, and foreign datagrams.
#[test]
fn losses_duplicates_and_foreign_packets_are_distinguished() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    server.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let thread = std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((n, from)) = server.recv_from(&mut buffer) {
            let (_, tag, seq) = packet::get(&buffer[..n]).unwrap();
            if seq == 2 {
                server.send_to(b"hello", from).unwrap();
                packet::put(&mut buffer, packet::ANSWER, tag ^ 1, seq, 0);
                server.send_to(&buffer[..n], from).unwrap();
                continue;
            }
            buffer[3] = packet::ANSWER;
            server.send_to(&buffer[..n], from).unwrap();
            if seq < 4 {
                server.send_to(&buffer[..n], from).unwrap();
            }
        }
    });
    let load = LoadGroups {
        groups: vec![LoadGroup { per_s: Some(50.0), ..group(Protocol::Udp, Pattern::Rr, &[at]) }],
        time: Duration::from_millis(200),
        ..LoadGroups::default()
    };
    let r = run(&load, &AtomicBool::new(false)).unwrap().remove(0);
    assert_eq!(r.lost_percent, Some(10.0), "{r:?}");
    let trouble = r.trouble.unwrap();
    assert!(trouble.contains("3 answers came twice") && trouble.contains("2 foreign"), "{trouble}");
    thread.join().unwrap();
}

/// One request is never answered: after a second the flow continues without it.
#[test]
fn a_loss_does_not_end_a_closed_loop() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    server.set_read_timeout(Some(Duration::from_millis(1500))).unwrap();
    let thread = std::thread::spawn(move || {
        let (mut buffer, mut last) = ([0; 2048], 0);
        while let Ok((n, from)) = server.recv_from(&mut buffer) {
            (_, _, last) = packet::get(&buffer[..n]).unwrap();
            buffer[3] = packet::ANSWER;
            if last != 2 {
                server.send_to(&buffer[..n], from).unwrap();
            }
        }
        last
    });
    let load = LoadGroups {
        groups: vec![group(Protocol::Udp, Pattern::Rr, &[at])],
        time: Duration::from_millis(1400),
        ..LoadGroups::default()
    };
    let r = run(&load, &AtomicBool::new(false)).unwrap().remove(0);
    let last = thread.join().unwrap();
    assert!(last >= 3, "{r:?}");
    // Sequences count from 0, one of them was lost, and nothing was measured besides.
    let l = r.latency.unwrap();
    assert_eq!((l.count, r.trouble), (u64::from(last), None));
    assert!((r.lost_percent.unwrap() - 100.0 / f64::from(last + 1)).abs() < 1e-9);
}

#[test]
fn one_way_and_what_a_sink_makes_of_it() {
    let with = |protocol| sink(&Sink { protocol, bind: LOCAL, threads: 2, cpus: vec![] }).unwrap();
    let udp = with(Protocol::Udp);
    let g = LoadGroup { threads: 2, flows: 4, per_s: Some(2000.0), ..group(Protocol::Udp, Pattern::Send, udp.at()) };
    let mut r = once(g, 200).unwrap();
    assert_eq!((r.unit, r.lost_percent, r.latency.is_none()), (Unit::Packets, None, true));
    assert_eq!(r.sent_per_s, 2000.0, "marked by intended time, so none more or less");
    std::thread::sleep(Duration::from_millis(100));
    let taken = udp.stop();
    arrived(&mut r, Duration::from_millis(200), &taken);
    let dropped: u64 = taken.iter().filter_map(|t| t.dropped).sum();
    // Warm-up datagrams may be among those dropped, and are not among the others.
    let packets = taken.iter().map(|t| t.packets).sum::<u64>();
    assert!(packets <= 400 && packets + dropped >= 400, "{taken:?}");
    assert!(dropped > 0 || r.lost_percent == Some(0.0) && r.bits_per_s == 2000.0 * 800.0, "{r:?} {taken:?}");

    // As fast as possible.
    let udp = with(Protocol::Udp);
    let r = once(group(Protocol::Udp, Pattern::Send, udp.at()), 500).unwrap();
    assert!(r.sent_per_s * 0.5 >= 32.0, "{r:?}");
    assert!(udp.stop().iter().map(|t| t.packets).sum::<u64>() > 0);

    for per_s in [None, Some(1000.0)] {
        let tcp = with(Protocol::Tcp);
        let g = LoadGroup {
            threads: 2,
            flows: 3,
            per_s,
            size_bytes: 1000,
            ..group(Protocol::Tcp, Pattern::Send, tcp.at())
        };
        let r = once(g, 100).unwrap();
        assert!(r.unit == Unit::Bytes && r.bits_per_s > 0.0 && r.done_per_s > 0.0, "{r:?}");
        let bytes = tcp.stop().iter().map(|t| t.bytes).sum::<u64>();
        assert!(bytes > 0);
        if per_s.is_some() {
            // 20 ms of warm-up and 100 ms; the last datagrams may still be in flight.
            assert!(bytes % 1000 == 0 && bytes <= 121_000, "{bytes}");
        }
    }
}

#[test]
fn a_stop_ends_it() {
    let service = answering(Protocol::Udp, 0);
    let load = LoadGroups {
        groups: vec![group(Protocol::Udp, Pattern::Rr, service.at())],
        time: Duration::from_secs(3000),
        ..LoadGroups::default()
    };
    let stop = AtomicBool::new(false);
    let why = std::thread::scope(|s| {
        let t = s.spawn(|| run(&load, &stop));
        std::thread::sleep(Duration::from_millis(50));
        stop.store(true, Ordering::Relaxed);
        t.join().unwrap().unwrap_err()
    });
    assert_eq!(why, LoadError::Stopped);
}

#[test]
fn listening_on_every_address_is_refused() {
    for (bind, words) in [(None, "no address"), (Some("0.0.0.0".parse().unwrap()), "every address")] {
        let why = answer(&Responder { bind, threads: 1, ..Responder::default() }).err().unwrap().to_string();
        assert!(why.contains(words), "{why}");
    }
}
