//! Which users a device's queues have besides the network stack.

use ringwise_kfmt::netdev_nl::QueueInfo;
use ringwise_model::order::Order;
use ringwise_model::{Dir, Fact, Unread, User};

use crate::links::Port;

/// XDP programs (link dump), users of single queues (`queue-get`), RDMA devices on the same function, Open vSwitch as
/// master. Absent: checked, no user found. Before 6.15 an AF_XDP socket is visible by its XDP program; one that only
/// sends is not visible, and the kernel protects its channels itself.
pub(crate) fn users(port: &Port, master_kind: Option<&str>, of_queues: &[User], rdma: &[String]) -> Fact<Vec<User>> {
    let mut out = Vec::new();
    if let Some(info) = &port.info {
        out.extend(info.xdp.iter().map(|x| User::Xdp { mode: x.mode.to_string(), program_id: x.program_id }));
    }
    out.extend_from_slice(of_queues);
    out.extend(rdma.iter().map(|d| User::Rdma { device: d.clone() }));
    if master_kind == Some("openvswitch") {
        out.push(User::Ovs);
    }
    if !out.is_empty() {
        return Fact::Known(out);
    }
    match port.info {
        Some(_) => Fact::Absent,
        None => Fact::Unknown(Unread::new(
            format!("users of {}", port.name),
            None,
            "the link dump that names XDP programs could not be read",
        )),
    }
}

/// The users of single queues, by queue. An AF_XDP socket is listed once for both directions.
pub(crate) fn of_queues(queues: &[QueueInfo]) -> Vec<User> {
    let mut out = Vec::new();
    for q in queues {
        let queue = q.id;
        if q.xsk {
            out.push(User::AfXdp { queue });
        }
        // Only receive queues have the other users.
        if q.dir == Dir::Tx {
            continue;
        }
        out.extend(q.dmabuf.map(|id| User::Dmabuf { queue, id }));
        if q.io_uring {
            out.push(User::IoUring { queue });
        }
        out.extend(q.lease.map(|l| User::Lease { queue, ifindex: l.ifindex, leased_as: l.queue, netns: l.netns }));
    }
    out.order_by(|a, b| (a.queue(), a).cmp(&(b.queue(), b)));
    out.dedup();
    out
}
