//! The settings of the interface of `watch --per-flow`, for traffic that the device cannot spread by ports.

use ringwise_discover::Options;
use ringwise_flow::{Tuple, UdpPorts, UdpPortsCount, UdpPortsGain};
use ringwise_kfmt::packet;
use ringwise_kfmt::traffic_class::{HashedBy, Tags, class};
use ringwise_knob::path;
use ringwise_observe::{AvailableRemedies, Tunnel, TunnelKind};
use ringwise_sys::Host;

use crate::source::Source;

/// `LINKTYPE_ETHERNET`
const ETHERNET: u32 = 1;
/// Software interfaces of each kind that are listed. Access concentrators have thousands of the same kind.
const MOST_OF_A_KIND: usize = 3;

/// What was read of the interface.
pub(super) struct Settings {
    /// `None`: the interface could not be read.
    pub means: Option<AvailableRemedies>,
    ports: Option<UdpPorts>,
}

impl Settings {
    pub(super) fn read(source: &Source, dev: &str) -> Self {
        let host = source.host.as_ref();
        let options =
            Options { devs: vec![dev.to_string()], skip_rivals: true, skip_control: true, ..Options::default() };
        // Flows are shown also for an interface that cannot be read. The block then reports that.
        let Ok(s) = ringwise_discover::snapshot(&source.host, &options) else {
            return Self { means: None, ports: None };
        };
        let nic = s.nic(dev);
        let key = ringwise_discover::flow_path::host_key(host);
        Self {
            means: nic.map(|n| AvailableRemedies::of(&s, n, tunnels(host))),
            ports: nic.and_then(|n| UdpPorts::new(n, &key)),
        }
    }

    /// Counts a frame of the sample.
    pub(super) fn count(&self, to: &mut UdpPortsCount, queue: Option<u32>, head: &[u8], packets: u64) {
        let Some(ports) = &self.ports else { return };
        // What is in two tags or a tunnel without ports is not hashed by its own ports.
        let by = class(head, Tags::OutermostMoved).hashed_by();
        let hashed = !matches!(by, HashedBy::Nothing | HashedBy::Addresses);
        let packet = packet::parse_frame(ETHERNET, head).ok().filter(|_| hashed);
        ports.add(to, packet.map(|p| Tuple::of_packet(&p)).as_ref(), queue, packets);
    }

    pub(super) fn gain(&self, count: &UdpPortsCount) -> Option<UdpPortsGain> {
        self.ports.as_ref()?.gain(count)
    }
}

/// Software interfaces that are up and receive what the kernel unpacked.
fn tunnels(host: &dyn Host) -> Vec<Tunnel> {
    let mut out: Vec<Tunnel> = Vec::new();
    for dev in ringwise_observe::interfaces(host) {
        let read = |file: &str| host.read_text(&path::of_device(&dev, file)).ok();
        let devtype = read("uevent");
        let devtype = devtype.iter().flat_map(|t| t.lines()).find_map(|l| l.strip_prefix("DEVTYPE="));
        let arp_type = read("type").and_then(|t| t.trim().parse().ok());
        let Some(kind) = TunnelKind::of(devtype, arp_type) else { continue };
        let up = read("flags").and_then(|t| u32::from_str_radix(t.trim().trim_start_matches("0x"), 16).ok());
        if up.is_none_or(|f| f & 1 == 0) || out.iter().filter(|t| t.kind == kind).count() >= MOST_OF_A_KIND {
            continue;
        }
        let rps = host.read_text(&path::of_rx(&dev, 0, "rps_cpus")).ok();
        let rps = rps.map(|mask| mask.trim().chars().any(|c| !matches!(c, '0' | ',')));
        let threaded = read("threaded").map(|t| t.trim() != "0");
        out.push(Tunnel { dev, kind, rps, threaded });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringwise_sys::Captured;

    /// The directory must be removed after the last read.
    fn host(files: &[(&str, &str)]) -> (Captured, std::path::PathBuf) {
        let dir = std::env::temp_dir().join(format!("ringwise-tunnels-{}", std::process::id()));
        for (path, text) in files {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir_all(dir.join("proc")).unwrap();
        (Captured::open(&dir).unwrap(), dir)
    }

    #[test]
    fn tunnels_of_a_host() {
        let mut files: Vec<(String, String)> = Vec::new();
        let mut add = |dev: &str, uevent: &str, kind: &str, flags: &str, rps: &str| {
            for (file, text) in [
                ("uevent", format!("{uevent}INTERFACE={dev}\n")),
                ("type", format!("{kind}\n")),
                ("flags", format!("{flags}\n")),
                ("queues/rx-0/rps_cpus", format!("{rps}\n")),
                ("threaded", "0\n".to_string()),
            ] {
                files.push((format!("sys/class/net/{dev}/{file}"), text));
            }
        };
        for n in 0..5 {
            add(&format!("ppp{n}"), "DEVTYPE=ppp\n", "512", "0x10d1", "00000000,00000000");
        }
        add("wg0", "DEVTYPE=wireguard\n", "65534", "0x91", "00000000,0000000f");
        add("gre1", "", "778", "0x80", "0");
        add("eth0", "", "1", "0x1003", "0");
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
        let (host, dir) = host(&files);
        let found = tunnels(&host);
        std::fs::remove_dir_all(dir).unwrap();
        let names: Vec<&str> = found.iter().map(|t| t.dev.as_str()).collect();
        assert_eq!(names, ["ppp0", "ppp1", "ppp2", "wg0"], "gre1 is down, and three of a kind are enough");
        assert_eq!((found[0].rps, found[0].threaded), (Some(false), Some(false)));
        assert_eq!((found[3].kind, found[3].rps), (TunnelKind::Wireguard, Some(true)));
    }
}
