//! Settings of the host that differ from the defaults of the driver, where these are known.

use ringwise_model::{Channels, ConfiguredBy, Nic, Snapshot};

use super::{Imported, ImportedValue, devices, irqbalance};

/// Defaults of a driver in the kernel. A value that is one of several defaults counts as a default.
struct Defaults {
    driver: &'static str,
    rx_ring: &'static [u32],
    tx_ring: &'static [u32],
    coalesce: &'static [(&'static str, &'static [u32])],
    /// As many combined channels as CPUs, up to the maximum.
    channel_for_each_cpu: bool,
}

/// From the headers of the drivers under drivers/net/ethernet/intel of the kernel: `IGB_DEFAULT_RXD`,
/// `IXGBE_DEFAULT_RXD`, `I40E_DEFAULT_NUM_DESCRIPTORS`, `ICE_DFLT_NUM_RX_DESC` (512 in its first version),
/// `E1000_DEFAULT_RXD`, and the same for sending; `IGB_DEFAULT_ITR` and `E1000_ITR` 3, which is a mode.
const DEFAULTS: [Defaults; 7] = [
    Defaults {
        driver: "igb",
        rx_ring: &[256],
        tx_ring: &[256],
        // With a queue pair for each vector, the driver reports 0 for sending.
        coalesce: &[("rx-usecs", &[3]), ("tx-usecs", &[0, 3])],
        channel_for_each_cpu: true,
    },
    Defaults {
        driver: "e1000e",
        rx_ring: &[256],
        tx_ring: &[256],
        coalesce: &[("rx-usecs", &[3])],
        channel_for_each_cpu: false,
    },
    Defaults { driver: "e1000", rx_ring: &[256], tx_ring: &[256], coalesce: &[], channel_for_each_cpu: false },
    Defaults { driver: "ixgbe", rx_ring: &[512], tx_ring: &[512], coalesce: &[], channel_for_each_cpu: true },
    Defaults { driver: "i40e", rx_ring: &[512], tx_ring: &[512], coalesce: &[], channel_for_each_cpu: true },
    Defaults { driver: "ice", rx_ring: &[2048, 512], tx_ring: &[256], coalesce: &[], channel_for_each_cpu: false },
    // The hypervisor chooses the rings. Without VIRTIO_NET_F_NOTF_COAL the driver reports one frame.
    Defaults {
        driver: "virtio_net",
        rx_ring: &[],
        tx_ring: &[],
        coalesce: &[("rx-max-frames", &[1]), ("tx-max-frames", &[1])],
        channel_for_each_cpu: true,
    },
];

/// Adds what is set on this host now: RPS, and rings, channels and moderation that differ from known defaults. Where the
/// defaults are unknown, the values are listed as not carried over.
pub fn in_effect(s: &Snapshot, out: &mut Imported) {
    irqbalance::running(s, out);
    for n in devices::all(s) {
        interface(s, n, out);
        for q in &n.rx_queues {
            if let Some(cpus) = q.rps_cpus.known().filter(|c| !c.is_empty()) {
                out.add(Some(n.name()), ImportedValue::RpsCpus(q.id, cpus.clone()), &ConfiguredBy::InEffect);
            }
        }
    }
}

fn interface(s: &Snapshot, n: &Nic, out: &mut Imported) {
    let by = &ConfiguredBy::InEffect;
    let driver = n.driver.known().map_or("", String::as_str);
    let defaults = DEFAULTS.iter().find(|d| d.driver == driver);
    let mut unknown: Vec<(String, String)> = Vec::new();
    let mut decide = |part: ImportedValue, known: Option<bool>| match known {
        Some(true) => {}
        Some(false) => out.add(Some(n.name()), part, by),
        None => unknown.push((part.key(), part.value())),
    };
    if let Some(r) = n.rings.known() {
        for (key, count, of) in [("rx", r.rx, defaults.map(|d| d.rx_ring)), ("tx", r.tx, defaults.map(|d| d.tx_ring))] {
            if let Some(c) = count.filter(|c| c.now > 0) {
                let known = of.map(|of| of.contains(&c.now) || (of.is_empty() && c.now == c.max));
                decide(ImportedValue::Ring(key, c.now), known);
            }
        }
    }
    if let Some(c) = n.channels.known() {
        let each_cpu = defaults.is_some_and(|d| d.channel_for_each_cpu);
        for (part, default) in channels(c, s.topology.online.len() as u32, each_cpu) {
            decide(part, default);
        }
    }
    if let Some(c) = n.coalesce.known() {
        let adaptive = |dir: &str| c.0.get(&format!("use-adaptive-{dir}")) == Some(&1);
        for (name, now) in &c.0 {
            // With adaptive moderation the driver chooses the values.
            let chosen = (name.starts_with("rx-") && adaptive("rx")) || (name.starts_with("tx-") && adaptive("tx"));
            let default =
                defaults.and_then(|d| d.coalesce.iter().find(|(k, _)| k == name)).map(|(_, v)| v.contains(now));
            let plain = !name.contains("-profile.");
            if !chosen && plain && (*now != 0 || default == Some(false)) {
                decide(ImportedValue::Coalesce(name.clone(), *now), default);
            }
        }
    }
    if !unknown.is_empty() {
        let what = format!("{} {}", n.name(), listed(&unknown));
        let of = if driver.is_empty() { "its driver".to_string() } else { format!("the driver {driver}") };
        out.leave(by, what, format!("whether these differ from the defaults of {of} is unknown; no source names them"));
    }
}

/// `rings.rx 512, tx 512, channels.combined 4`: each first part of a key once.
fn listed(all: &[(String, String)]) -> String {
    let mut last = "";
    let mut out: Vec<String> = Vec::new();
    for (key, value) in all {
        let (head, tail) = key.split_once('.').unwrap_or((key, ""));
        out.push(if head == last { format!("{tail} {value}") } else { format!("{key} {value}") });
        last = head;
    }
    out.join(", ")
}

/// The numbers of channels, and whether they are defaults. `None`: unknown. A number that cannot be changed is a default.
fn channels(c: &Channels, cpus: u32, each_cpu: bool) -> Vec<(ImportedValue, Option<bool>)> {
    let all = [("combined", c.combined), ("rx", c.rx), ("tx", c.tx)];
    let all = all.into_iter().filter_map(|(k, c)| Some((k, c?))).filter(|(_, c)| c.now > 0 && c.max > 0);
    all.map(|(key, c)| {
        let default = match () {
            () if c.max == 1 => Some(true),
            () if each_cpu && key == "combined" => Some(c.now == c.max.min(cpus)),
            () => None,
        };
        (ImportedValue::Channels(key, c.now), default)
    })
    .collect()
}
