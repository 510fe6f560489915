//! A report of `sos report`: files of proc and sys as far as its plugins copy them, and the output of commands. It is
//! read like a capture: the output of a command is converted to the kernel's reply. Everything else is "not in a sos
//! report".
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use ringwise_kfmt::ethtool_nl::{self, msg};
use ringwise_kfmt::{
    ParseError, audit, cpulist, ethtool_ioctl, ethtool_text as text, ip_text, lscpu_text, nl, qdisc, rtnl,
};
use ringwise_model::errno::EINVAL;
use ringwise_sys::{Error, Host, HostWrapper, IoctlCmd, Request, Result};

use crate::links::NET;
use crate::natural;

const COMMANDS: &str = "/sos_commands";
const NODE: &str = "/sys/devices/system/node";
const WHY: &str = "not in a sos report";
/// The maximum number of processes in a report, unless it was changed by an option.
const PROCESSES: usize = 2048;

/// `host` behind a reader of such reports, if its files show that it is one.
pub fn report(host: Arc<dyn Host>) -> Arc<dyn Host> {
    let told = host.read_text("/version.txt").is_ok_and(|t| t.starts_with("sosreport"));
    if host.is_recorded() && (told || host.list(COMMANDS).is_ok()) {
        return Arc::new(Report { host, links: OnceLock::new(), made: OnceLock::new() });
    }
    host
}

struct Report {
    host: Arc<dyn Host>,
    /// By name, from `ip -s -d link`.
    links: OnceLock<Result<BTreeMap<String, ip_text::LinkLine>>>,
    /// Files below `/proc/sys` whose content commands print.
    made: OnceLock<HashMap<String, String>>,
}

/// The name that sos gives to the file with a command's output (`_mangle_command` of sos/report/plugins/__init__.py): all
/// that separates two words becomes one underscore, and none is at the ends.
fn file_of(command: &str) -> String {
    let mut out = String::with_capacity(command.len());
    let mut word = true;
    for c in command.chars() {
        let kept = c.is_alphanumeric() || "_-./".contains(c);
        match (kept, word) {
            (true, _) => out.push(if c == '/' { '.' } else { c }),
            (false, true) => out.push('_'),
            (false, false) => {}
        }
        word = kept;
    }
    out.trim_matches([' ', '.', '_', '-']).to_string()
}

fn not_in_report(what: impl Into<String>) -> Error {
    Error::other(what, WHY)
}

/// Not an error of the kernel, only missing.
fn is_missing(e: &Error) -> bool {
    e.errno.is_none()
}

impl Report {
    fn command(&self, plugin: &str, command: &str) -> Result<String> {
        let path = format!("{COMMANDS}/{plugin}/{}", file_of(command));
        self.host.read_text(&path).map_err(|_| not_in_report(format!("{command} ({path})")))
    }

    fn networking(&self, command: &str) -> Result<String> {
        self.command("networking", command)
    }

    /// The output of a command, as the bytes of a reply. A refusal keeps its errno.
    fn command_reply(
        &self,
        request: &Request,
        command: &str,
        reply: impl FnOnce(&str) -> std::result::Result<Vec<u8>, String>,
    ) -> Result<Vec<Vec<u8>>> {
        let printed = self.networking(command).map_err(|e| Error { what: request.to_string(), ..e })?;
        match reply(&printed) {
            Ok(bytes) => Ok(vec![bytes]),
            Err(words) => Err(match text::refused(&printed) {
                Some(errno) => Error::errno(request.to_string(), errno),
                None => Error::other(request.to_string(), format!("{words} ({command})")),
            }),
        }
    }

    fn links(&self) -> Result<&BTreeMap<String, ip_text::LinkLine>> {
        let read = || {
            let what = "ip -s -d link";
            let printed = self.networking(what)?;
            let all = ip_text::links(&printed).map_err(|e| Error::other(what, e.to_string()))?;
            Ok(all.into_iter().map(|l| (l.info.name.clone(), l)).collect::<BTreeMap<_, _>>())
        };
        self.links.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// The message of one interface, with the permanent address from ethtool.
    fn link(&self, line: &ip_text::LinkLine) -> Result<Vec<u8>> {
        let mut info = line.info.clone();
        if info.perm_mac.is_none() {
            let printed = self.networking(&format!("ethtool -P {}", info.name));
            info.perm_mac = printed.ok().and_then(|t| text::permanent_mac(&t));
        }
        rtnl::link_reply(&info).map_err(|e| Error::other("ip -s -d link", e.to_string()))
    }

    fn get(&self, request: &Request, cmd: u8, dev: &str) -> Result<Vec<Vec<u8>>> {
        let command = |flag: &str| format!("ethtool {flag} {dev}");
        let words = |e: ParseError| e.to_string();
        let long = |e: nl::TooLong| ParseError::from(e).to_string();
        match cmd {
            msg::CHANNELS_GET => self.command_reply(request, &command("-l"), |t| {
                text::channels(t).map(|c| ethtool_nl::channels_reply(&c)).map_err(words)
            }),
            msg::RINGS_GET => self.command_reply(request, &command("-g"), |t| {
                let (rings, split) = text::rings(t).map_err(words)?;
                let mut out = ethtool_nl::rings_reply(&rings);
                out.extend(split.map(audit::tcp_data_split_reply).unwrap_or_default());
                Ok(out)
            }),
            msg::COALESCE_GET => self.command_reply(request, &command("-c"), |t| {
                ethtool_nl::coalesce_reply(&text::coalesce(t).map_err(words)?).map_err(|e| e.to_string())
            }),
            msg::PAUSE_GET => self.command_reply(request, &command("-a"), |t| {
                text::pause(t).map(|p| ethtool_nl::pause_reply(&p)).map_err(words)
            }),
            msg::FEATURES_GET => self.command_reply(request, &command("-k"), |t| {
                ethtool_nl::features_reply(&text::features(t).map_err(words)?).map_err(long)
            }),
            msg::PRIVFLAGS_GET => self.command_reply(request, &command("--show-priv-flags"), |t| {
                ethtool_nl::private_flags_reply(&text::private_flags(t).map_err(words)?).map_err(long)
            }),
            audit::EEE_GET => self.command_reply(request, &command("--show-eee"), |t| {
                text::eee(t).map(|(active, enabled)| audit::eee_reply(active, enabled)).map_err(words)
            }),
            _ => Err(not_in_report(request.to_string())),
        }
    }

    fn qdiscs(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        let command = "tc -s qdisc show";
        let bad = |e: ParseError| Error::other(request.to_string(), e.to_string());
        let printed = self.networking(command).map_err(|e| Error { what: request.to_string(), ..e })?;
        let links = self.links()?;
        let all = ip_text::qdiscs(&printed).map_err(bad)?.into_iter();
        all.filter_map(|(dev, q)| Some(qdisc::Qdisc { ifindex: links.get(&dev)?.info.ifindex, ..q }))
            .map(|q| qdisc::qdisc_reply(&q).map_err(bad))
            .collect()
    }

    /// A file below `/sys/class/net/DEV` whose content a command prints.
    fn of_interface(&self, path: &str) -> Option<Result<String>> {
        let (dev, file) = path.strip_prefix(NET)?.strip_prefix('/')?.split_once('/')?;
        let link = self.links().ok().and_then(|l| l.get(dev))?;
        // The kernel refuses to read these while the interface is switched off.
        if matches!(file, "speed" | "duplex" | "carrier") && !link.info.is_up() {
            return Some(Err(Error::errno(format!("read {path}"), EINVAL)));
        }
        let printed = || Some(text::link(&self.networking(&format!("ethtool {dev}")).ok()?));
        let number = |n: u32| n.to_string();
        let told = match file {
            "ifindex" => Some(number(link.info.ifindex)),
            "mtu" => link.info.mtu.map(number),
            "operstate" => link.info.operstate.map(str::to_string),
            "tx_queue_len" => link.tx_queue_len.map(number),
            "address" => link.info.mac.clone(),
            "carrier" => link.info.carrier.map(|c| number(c.into())),
            "duplex" => printed()?.duplex.map(str::to_string),
            "speed" => printed()?.speed_mbps.map(|s| s.map_or("-1".into(), number)),
            _ => None,
        };
        told.map(Ok)
    }

    /// Queues of an interface, by its channels: as many directories exist. No command prints the files in them.
    fn queues(&self, path: &str) -> Option<Vec<String>> {
        let dev = path.strip_prefix(NET)?.strip_prefix('/')?.strip_suffix("/queues")?;
        let (mut rx, mut tx) = (0, 0);
        match self.networking(&format!("ethtool -l {dev}")) {
            Ok(t) if text::channels(&t).is_ok() => {
                let c = text::channels(&t).ok()?;
                (rx, tx) = (c.rx_queues(), c.tx_queues());
            }
            _ => {}
        }
        // Without channels, only one queue is certain to be used.
        if (rx, tx) == (0, 0) {
            let info = &self.links().ok()?.get(dev)?.info;
            if (info.num_rx_queues, info.num_tx_queues) != (Some(1), Some(1)) {
                return None;
            }
            (rx, tx) = (1, 1);
        }
        const MOST: u32 = 4096;
        let names = |dir: &'static str, n: u32| (0..n.min(MOST)).map(move |i| format!("{dir}-{i}"));
        Some(names("rx", rx).chain(names("tx", tx)).collect())
    }

    /// A virtual function has a link to its physical function, which is not copied. The name in the list of PCI devices
    /// shows it too.
    fn is_virtual_function(&self, path: &str) -> bool {
        let of = || {
            let dev = path.strip_prefix(NET)?.strip_prefix('/')?.strip_suffix("/device")?;
            let address = text::drvinfo(&self.networking(&format!("ethtool -i {dev}")).ok()?).ok()?.bus_info;
            // Early versions of sos 3 run lspci without -nnvv.
            let all = ["lspci -nnvv", "lspci"].iter().find_map(|c| self.command("pci", c).ok())?;
            let short = address.strip_prefix("0000:").unwrap_or(&address);
            let line = all.lines().find(|l| l.split(' ').next().is_some_and(|a| a == address || a == short))?;
            Some(line.contains("Virtual Function"))
        };
        of().unwrap_or(false)
    }

    /// The nodes and their CPUs, by `lscpu`: the plugin numa runs only where numactl or numad is installed.
    fn nodes(&self) -> BTreeMap<String, String> {
        let printed = self.command("processor", "lscpu").unwrap_or_default();
        let nodes = lscpu_text::nodes(&printed).into_iter();
        nodes.map(|(n, cpus)| (format!("node{}", n.0), cpulist::format(&cpus))).collect()
    }

    fn made(&self) -> &HashMap<String, String> {
        self.made.get_or_init(|| {
            let mut out = HashMap::new();
            for line in self.command("kernel", "sysctl -a").unwrap_or_default().lines() {
                // net.ipv4.conf.eth0/100.rp_filter: a dot in a name is printed as a slash.
                if let Some((key, value)) = line.split_once('=') {
                    let swap = |c| match c {
                        '.' => '/',
                        '/' => '.',
                        c => c,
                    };
                    let path: String = key.trim().chars().map(swap).collect();
                    out.insert(format!("/proc/sys/{path}"), value.trim().to_string());
                }
            }
            let release = self.command("kernel", "uname -a").ok();
            // Linux edge3 6.12.48-amd64 #1 SMP …
            if let Some(r) = release.as_deref().and_then(|t| t.split_whitespace().nth(2)) {
                out.entry("/proc/sys/kernel/osrelease".into()).or_insert_with(|| r.to_string());
            }
            out
        })
    }
}

impl HostWrapper for Report {
    fn inside(&self) -> &dyn Host {
        self.host.as_ref()
    }
}

impl Host for Report {
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        match self.host.read(path) {
            Err(e) if is_missing(&e) => {}
            other => return other,
        }
        if let Some(told) = self.of_interface(path) {
            return told.map(String::into_bytes);
        }
        if let Some(node) = path.strip_prefix(NODE).and_then(|p| p.strip_prefix('/')?.strip_suffix("/cpulist")) {
            let cpus = self.nodes().remove(node);
            return cpus.map(String::into_bytes).ok_or_else(|| not_in_report(format!("read {path}")));
        }
        // Another file of the process contains the same name.
        if let Some(dir) = path.strip_suffix("/comm").filter(|d| d.starts_with("/proc/")) {
            let status = self.host.read_text(&format!("{dir}/status")).unwrap_or_default();
            let name = status.lines().find_map(|l| l.strip_prefix("Name:"));
            return name.map(|n| n.trim().into()).ok_or_else(|| not_in_report(format!("read {path}")));
        }
        self.made().get(path).map(|t| t.clone().into_bytes()).ok_or_else(|| not_in_report(format!("read {path}")))
    }

    fn write(&self, path: &str, data: &[u8]) -> Result<()> {
        self.host.write(path, data)
    }

    fn list(&self, path: &str) -> Result<Vec<String>> {
        match self.host.list(path) {
            Err(e) if is_missing(&e) => {
                let nodes =
                    || Some(self.nodes().into_keys().collect::<Vec<_>>()).filter(|n| path == NODE && !n.is_empty());
                self.queues(path).or_else(nodes).ok_or_else(|| not_in_report(format!("list {path}")))
            }
            Ok(names) if path == "/proc" && natural::numbers(&names, "").len() >= PROCESSES => Err(Error::other(
                format!("list {path}"),
                format!("{WHY}: it contains only the first {PROCESSES} processes"),
            )),
            Ok(mut names) => {
                if self.is_virtual_function(path) {
                    names.push("physfn".into());
                }
                Ok(names)
            }
            other => other,
        }
    }

    fn readlink(&self, path: &str) -> Result<String> {
        self.host.readlink(path).map_err(|e| if is_missing(&e) { not_in_report(e.what) } else { e })
    }

    fn kernel(&self, request: &Request) -> Result<Vec<Vec<u8>>> {
        let named = |e: Error| Error { what: request.to_string(), ..e };
        match request {
            Request::Links => self.links().map_err(named)?.values().map(|l| self.link(l)).collect(),
            Request::Link { dev } => match self.links().map_err(named)?.get(dev) {
                Some(l) => Ok(vec![self.link(l)?]),
                None => Err(not_in_report(request.to_string())),
            },
            Request::Addrs => {
                let printed = ["ip -o addr", "ip -o -d addr"].iter().find_map(|c| self.networking(c).ok());
                let all = ip_text::addresses(&printed.ok_or_else(|| not_in_report(request.to_string()))?);
                all.iter()
                    .map(|(i, a)| rtnl::addr_reply(*i, a).map_err(|e| Error::other(request.to_string(), e.to_string())))
                    .collect()
            }
            Request::Qdiscs => self.qdiscs(request),
            Request::EthtoolGet { cmd, dev, .. } => self.get(request, *cmd, dev),
            Request::Ioctl { cmd: IoctlCmd::DrvinfoGet, dev, .. } => {
                self.command_reply(request, &format!("ethtool -i {dev}"), |t| {
                    text::drvinfo(t).map(|d| ethtool_ioctl::drvinfo_reply(&d)).map_err(|e| e.to_string())
                })
            }
            _ => Err(not_in_report(request.to_string())),
        }
    }

    fn is_recorded(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::file_of;

    /// Names that sos 3.9 and 4.8 write.
    #[test]
    fn names_of_files() {
        for (command, file) in [
            ("ethtool -i eth0", "ethtool_-i_eth0"),
            ("ethtool --show-priv-flags ens1f0np0", "ethtool_--show-priv-flags_ens1f0np0"),
            ("ip -s -d link", "ip_-s_-d_link"),
            ("tc -s qdisc show", "tc_-s_qdisc_show"),
            ("ethtool -c eth0.100", "ethtool_-c_eth0.100"),
            ("ethtool -c a(b) ", "ethtool_-c_a_b"),
            ("ethtool -l br-", "ethtool_-l_br"),
            ("cat /sys/x", "cat_.sys.x"),
        ] {
            assert_eq!(file_of(command), file);
        }
    }
}
