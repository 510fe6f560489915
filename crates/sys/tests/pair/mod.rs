//! A veth pair in the present network namespace, whose `/sys` must show this namespace.

use std::time::{Duration, Instant};

use crate::ip::ip;

fn attribute(dev: &str, name: &str) -> String {
    std::fs::read_to_string(format!("/sys/class/net/{dev}/{name}")).unwrap().trim().to_string()
}

/// Two interfaces with this many queues each. What is sent to 10.1.0.2 leaves through v1 and arrives at v0; what is sent to 10.2.0.2 leaves through v0.
pub(crate) fn connected_pair(queues: u32) {
    let queues = format!("numtxqueues {queues} numrxqueues {queues}");
    ip(&format!("link add v0 {queues} type veth peer name v1 {queues}"));
    for dev in ["v0", "v1"] {
        // Without this, the kernel sends multicast frames of its own when an interface comes up.
        let sysctl = format!("/proc/sys/net/ipv6/conf/{dev}/disable_ipv6");
        if std::fs::exists(&sysctl).unwrap() {
            std::fs::write(&sysctl, "1").unwrap();
        }
    }
    for (from, subnet, to) in [("v1", 1, "v0"), ("v0", 2, "v1")] {
        ip(&format!("addr add 10.{subnet}.0.1/24 dev {from}"));
        ip(&format!("link set {from} up"));
        let address = attribute(to, "address");
        ip(&format!("neigh add 10.{subnet}.0.2 lladdr {address} nud permanent dev {from}"));
    }
    // The kernel drops what is sent until a worker of its own has noticed the carrier.
    for dev in ["v0", "v1"] {
        let deadline = Instant::now() + Duration::from_secs(60);
        while attribute(dev, "operstate") != "up" {
            assert!(Instant::now() < deadline, "{dev} has no carrier");
            std::thread::sleep(Duration::from_millis(1));
        }
        // The worker holds the lock of rtnetlink until it is done, and this waits for the lock.
        ip(&format!("link set {dev} up"));
    }
}
