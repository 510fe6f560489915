//! Which users a device's queues have besides the network stack.

use ringwise_model::{Fact, Unread, User};

use crate::links::Port;

/// XDP programs (link dump), AF_XDP sockets on receive queues (`queue-get`, since 6.14), RDMA devices on the same
/// function, Open vSwitch as master. Absent: checked, no user found. On older kernels an AF_XDP socket is visible by
/// its XDP program; one that only sends is not visible, and the kernel protects its channels itself.
pub(crate) fn users(port: &Port, master_kind: Option<&str>, xsk: &[u32], rdma: &[String]) -> Fact<Vec<User>> {
    let mut out = Vec::new();
    if let Some(info) = &port.info {
        out.extend(info.xdp.iter().map(|x| User::Xdp { mode: x.mode.to_string(), program_id: x.program_id }));
    }
    out.extend(xsk.iter().map(|q| User::AfXdp { queue: *q }));
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
