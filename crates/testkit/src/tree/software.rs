//! Interfaces without a device: lo, bonds, VLANs, bridges, veth.

use super::desc::{Host, Software};
use super::{Cpus, Tree, nic, text};

pub(super) fn write(tree: &mut Tree, host: &Host, cpus: &Cpus) -> Result<(), String> {
    device(tree, cpus, "lo", 1, 1, "00:00:00:00:00:00", "", 1);
    for s in &host.software {
        for (i, name) in s.names().iter().enumerate() {
            one(tree, host, cpus, s, name, i)?;
        }
    }
    Ok(())
}

fn one(tree: &mut Tree, host: &Host, cpus: &Cpus, s: &Software, name: &str, i: usize) -> Result<(), String> {
    let index = host.ifindex(name).unwrap_or(0);
    let devtype = match s.kind.as_str() {
        "bond" | "vlan" | "bridge" => s.kind.as_str(),
        "veth" | "tun" | "dummy" => "",
        other => return Err(format!("software {name}: kind {other} is not supported")),
    };
    let mut below = index;
    for lower in &s.lower {
        let at = host.ifindex(lower).ok_or_else(|| format!("software {name}: no interface {lower}"))?;
        if s.kind == "vlan" {
            below = at;
        }
    }
    if s.kind == "veth" {
        // The other end is in another namespace and has its own index there.
        below = 900 + i as u32;
    }
    let mac = format!("02:00:00:00:{:02x}:{:02x}", index >> 8, index & 255);
    let dir = device(tree, cpus, name, index, below, &mac, devtype, s.queues);
    for lower in s.lower.iter().filter(|l| host.software.iter().any(|o| o.names().contains(l))) {
        let at = format!("/sys/devices/virtual/net/{lower}");
        tree.link(format!("{dir}/lower_{lower}"), &at);
        tree.link(format!("{at}/upper_{name}"), &dir);
    }
    match s.kind.as_str() {
        "bond" => {
            tree.line(format!("{dir}/bonding/slaves"), s.lower.join(" "));
            tree.line(format!("{dir}/bonding/mode"), "802.3ad 4");
        }
        "bridge" => tree.line(format!("{dir}/bridge/stp_state"), 0),
        "tun" => tree.line(format!("{dir}/tun_flags"), "0x1002"),
        "vlan" => {
            tree.line(format!("/proc/net/vlan/{name}"), format!("{name}  VID: {}", 100 + i));
            for lower in s.lower.iter().filter(|l| host.nic.iter().any(|n| n.name == **l)) {
                let at = nic::interface_dir(host, lower)?;
                tree.link(format!("{dir}/lower_{lower}"), &at);
                tree.link(format!("{at}/upper_{name}"), &dir);
            }
        }
        _ => {}
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "one line per attribute of the kernel")]
fn device(
    tree: &mut Tree,
    cpus: &Cpus,
    name: &str,
    index: u32,
    below: u32,
    mac: &str,
    devtype: &str,
    queues: u32,
) -> String {
    let dir = format!("/sys/devices/virtual/net/{name}");
    tree.link(format!("/sys/class/net/{name}"), &dir);
    tree.link(format!("{dir}/subsystem"), "/sys/class/net");
    nic::common(tree, &dir, name, index, below, mac, true, if name == "lo" { 65536 } else { 1500 }, devtype);
    for q in 0..queues {
        tree.line(format!("{dir}/queues/rx-{q}/rps_cpus"), text::mask(&[], cpus.bits));
        tree.line(format!("{dir}/queues/rx-{q}/rps_flow_cnt"), 0);
        if queues > 1 {
            tree.line(format!("{dir}/queues/tx-{q}/xps_cpus"), text::mask(&[], cpus.bits));
        }
        tree.line(format!("{dir}/queues/tx-{q}/tx_timeout"), 0);
    }
    dir
}
