//! Where a program or unit listens, on a made tree.

use crate::common::Tree;
use ringwise_discover::flow_path::connected_addresses;
use ringwise_discover::sockets::{Listener, listeners, listening_processes};
use ringwise_model::Flow;

const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

fn line(address: &str, state: &str, inode: u64) -> String {
    format!("   0: {address} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0\n")
}

fn process(t: &mut Tree, pid: u32, comm: &str, exe: &str, cgroup: &str, sockets: &[u64]) {
    t.file(format!("/proc/{pid}/comm"), format!("{comm}\n"));
    t.file(format!("/proc/{pid}/cgroup"), format!("0::{cgroup}\n"));
    t.link(format!("/proc/{pid}/exe"), exe);
    t.link(format!("/proc/{pid}/ns/net"), "net:[4026531840]");
    t.link(format!("/proc/{pid}/fd/0"), "/dev/null");
    for (i, s) in sockets.iter().enumerate() {
        t.link(format!("/proc/{pid}/fd/{}", i + 3), format!("socket:[{s}]"));
    }
}

fn tree() -> Tree {
    let mut t = Tree::default();
    t.link("/proc/self/ns/net", "net:[4026531840]");
    process(&mut t, 100, "nginx", "/usr/sbin/nginx", "/system.slice/nginx.service", &[1, 2]);
    process(&mut t, 101, "nginx", "/usr/sbin/nginx", "/system.slice/nginx.service", &[1, 2, 9]);
    process(&mut t, 200, "a-very-long-pro", "/opt/a-very-long-program (deleted)", "/user.slice/x.scope", &[3]);
    process(&mut t, 300, "java", "/usr/lib/jvm/bin/java", "/system.slice/kafka.service/worker", &[4, 5]);
    process(&mut t, 400, "idle", "/usr/bin/idle", "/system.slice/idle.service", &[]);
    t.file("/proc/net/tcp", [HEAD, &line("00000000:0050", "0A", 1), &line("0501A8C0:0050", "01", 9)].concat());
    let six = "00000000000000000000000000000000:01BB";
    t.file(
        "/proc/net/tcp6",
        [HEAD, &line(six, "0A", 2), &line("B80D0120000000000000000001000000:2384", "0A", 4)].concat(),
    );
    t.file("/proc/net/udp", [HEAD, &line("0501A8C0:0035", "07", 3), &line("0100007F:0035", "07", 5)].concat());
    t
}

fn found(t: &Tree, flow: Flow) -> Result<Vec<String>, String> {
    let text = |l: Listener| format!("{} {} {}", l.protocol, l.address, l.port);
    listeners(&t.host(), &flow).map(|l| l.into_iter().map(text).collect()).map_err(|e| e.to_string())
}

fn program(t: &Tree, name: &str) -> Result<Vec<String>, String> {
    found(t, Flow::Program(name.into()))
}

fn unit(t: &Tree, name: &str) -> Result<Vec<String>, String> {
    found(t, Flow::Unit(name.into()))
}

#[cfg(target_endian = "little")]
#[test]
fn by_name_file_and_unit() {
    let t = tree();
    assert_eq!(program(&t, "nginx").unwrap(), ["tcp 0.0.0.0 80", "tcp :: 443"], "each port once, no connection");
    assert_eq!(program(&t, "/usr/sbin/nginx").unwrap().len(), 2);
    assert_eq!(
        program(&t, "a-very-long-program").unwrap(),
        ["udp 192.168.1.5 53"],
        "comm is cut, the file was replaced"
    );
    assert_eq!(unit(&t, "nginx").unwrap().len(), 2);
    assert_eq!(unit(&t, "kafka.service").unwrap(), ["tcp 2001:db8::1 9092", "udp 127.0.0.1 53"]);
    assert_eq!(found(&t, Flow::Match { flow: "tcp4".into(), fields: Default::default() }).unwrap().len(), 0);
}

#[cfg(target_endian = "little")]
#[test]
fn as_the_fields_of_rules() {
    let words = |flow: Flow| -> Vec<String> {
        let all = listeners(&tree().host(), &flow).unwrap();
        let text = |(f, m): (String, std::collections::BTreeMap<String, String>)| {
            m.iter().fold(f, |t, (k, v)| format!("{t} {k} {v}"))
        };
        all.iter().flat_map(Listener::matches).map(text).collect()
    };
    assert_eq!(words(Flow::Program("nginx".into())), ["tcp4 dst-port 80", "tcp4 dst-port 443", "tcp6 dst-port 443"]);
    assert_eq!(words(Flow::Unit("kafka".into())), ["tcp6 dst-ip 2001:db8::1 dst-port 9092"], "loopback never arrives");
    assert_eq!(words(Flow::Program("a-very-long-program".into())), ["udp4 dst-ip 192.168.1.5 dst-port 53"]);
    for w in words(Flow::Program("nginx".into())) {
        ringwise_kfmt::rule::parse_match(&w).unwrap();
    }
}

#[test]
fn unavailable_data_is_reported() {
    let mut t = tree();
    assert_eq!(
        program(&t, "apache2").unwrap_err(),
        "program \"apache2\": not running (not among 5 processes); start it first, or name its ports"
    );
    assert!(unit(&t, "apache2").unwrap_err().starts_with("unit \"apache2.service\": not running"));
    assert_eq!(
        program(&t, "idle").unwrap_err(),
        "program \"idle\": runs (process 400), but listens on no TCP or UDP port; name the fields of its flows"
    );
    // As a link that the kernel does not let ringwise read: unknown, not "no port".
    t.error("/proc/400/fd/7", 13);
    assert_eq!(
        program(&t, "idle").unwrap_err(),
        "program \"idle\": its open files cannot be read (readlink /proc/400/fd/7: EACCES (Permission denied)); run as root, \
         or name its ports"
    );
    t.link("/proc/300/ns/net", "net:[4026532999]");
    assert!(program(&t, "java").unwrap_err().contains("runs in another network namespace (process 300)"));
    t.file("/proc/net/tcp", "head\n rubbish\n");
    assert!(program(&t, "nginx").unwrap_err().contains("/proc/net/tcp cannot be read: /proc/net, line 2"));
}

#[cfg(target_endian = "little")]
#[test]
fn processes_that_listen_with_the_cpus_that_they_may_use() {
    let mut t = tree();
    for (pid, cpus) in [(100, "4-7"), (101, "5"), (200, "0-15"), (300, "0-15"), (400, "0-15")] {
        t.file(format!("/proc/{pid}/status"), format!("Name:\tx\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t0\n"));
    }
    // One process has ended since its sockets were listed, another one runs in another network namespace.
    t.link("/proc/500/fd/3", "socket:[1]");
    process(&mut t, 600, "nginx", "/usr/sbin/nginx", "/x", &[1]);
    t.link("/proc/600/ns/net", "net:[4026532999]");
    // It holds the sockets of units that are started on demand.
    process(&mut t, 1, "systemd", "/lib/systemd/systemd", "/init.scope", &[1]);
    let text = |t: &Tree| {
        let found = listening_processes(&t.host()).unwrap();
        let one = |p: &ringwise_discover::sockets::ListeningProcess| {
            let ports: Vec<String> = p.listeners.iter().map(|l| l.port.to_string()).collect();
            format!("{} {} on {}: {}", p.pid, p.name, p.cpus_allowed, ports.join(" "))
        };
        (found.all.iter().map(one).collect::<Vec<_>>(), found.unread.map(|u| u.what))
    };
    let (all, unread) = text(&t);
    let want = [
        "100 nginx on 4-7: 80 443",
        "101 nginx on 5: 80 443",
        "200 a-very-long-pro on 0-15: 53",
        "300 java on 0-15: 9092",
    ];
    assert_eq!(all, want, "a socket of a loopback address receives nothing from a network");
    assert_eq!(unread, None);
    // Without permission for one process, the others are still examined.
    t.error("/proc/100/fd/3", 13);
    let (all, unread) = text(&t);
    assert_eq!(all, want[1..]);
    assert_eq!(unread.as_deref(), Some("readlink /proc/100/fd/3"));
}

#[cfg(target_endian = "little")]
#[test]
fn local_addresses_of_the_connections_of_processes() {
    let mut t = tree();
    let of = |t: &Tree, pids: &[u32]| connected_addresses(&t.host(), &pids.iter().copied().collect());
    let found = of(&t, &[100, 101, 999]).unwrap();
    let text: Vec<String> = found.iter().map(|(pid, all)| format!("{pid} {all:?}")).collect();
    assert_eq!(text, ["100 {}", "101 {192.168.1.5}"], "999 has ended, and 100 only listens");
    // A connection of the host to itself.
    let own = line("0501A8C0:0050", "01", 9).replace("00000000:0000", "0501A8C0:1234");
    t.file("/proc/net/tcp", [HEAD, &own].concat());
    assert_eq!(of(&t, &[101]).unwrap()[&101], [].into());
    t.error("/proc/101/fd/3", 13);
    assert_eq!(of(&t, &[101]).unwrap_err().what, "readlink /proc/101/fd/3");
    assert!(of(&t, &[]).unwrap().is_empty());
}
