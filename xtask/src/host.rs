//! A lab host is a file: `lab/hosts/NAME.toml` becomes a QEMU command line and a table for the guest.

use crate::package::Arch;
use crate::paths;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::path::Path;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    #[serde(skip)]
    pub name: String,
    pub about: String,
    #[serde(default)]
    pub arch: Arch,
    /// Names from `lab/kernels.toml`, of the same machine.
    pub kernels: Vec<String>,
    /// The first process.
    #[serde(default)]
    pub system: System,
    /// Its Debian has Python and sudo too (only with systemd).
    #[serde(default)]
    pub python: bool,
    pub cpu: Cpu,
    /// Megabytes, if no node has a size.
    #[serde(default = "memory")]
    pub memory: u32,
    #[serde(default)]
    pub node: Vec<Node>,
    #[serde(default)]
    pub nic: Vec<Nic>,
    #[serde(default)]
    pub cmdline: String,
    /// CPUs that are taken offline before anything else runs.
    #[serde(default)]
    pub offline: Vec<u32>,
    /// More shell variables for the guest, a line each.
    #[serde(skip)]
    pub variables: String,
    /// The port of 127.0.0.1 on this machine that QEMU forwards to port 22 of NICs with `ssh`.
    #[serde(skip)]
    pub ssh_port: u16,
    /// Seconds that booting and shutting down may take.
    #[serde(default = "boot_limit")]
    pub boot_limit: u64,
}

fn memory() -> u32 {
    512
}

fn boot_limit() -> u64 {
    240
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cpu {
    pub sockets: u32,
    pub cores: u32,
    pub threads: u32,
    #[serde(default)]
    pub l3: L3,
    /// QEMU's model: Nehalem is the newest that boots without warnings at full speed.
    #[serde(default = "model")]
    pub model: String,
}

fn model() -> String {
    "Nehalem".into()
}

impl Cpu {
    pub(crate) fn count(&self) -> u32 {
        self.sockets * self.cores * self.threads
    }
}

/// The guest's userland.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum System {
    /// The initramfs, with `lab/init.sh` as the first process.
    #[default]
    Busybox,
    /// A Debian on its own disk, see `userland.rs`; a scenario may reboot it.
    Systemd,
}

/// The CPUs that share one L3 cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum L3 {
    #[default]
    Package,
    Core,
    /// QEMU describes no such cache.
    None,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    /// A CPU list such as `0-3,8`.
    pub cpus: String,
    pub memory: u32,
    /// Distances to every node, in order.
    pub distance: Vec<u32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nic {
    pub name: String,
    pub driver: Driver,
    pub node: Option<u32>,
    /// Queues the device offers (igb, e1000e and vmxnet3 decide for themselves).
    #[serde(default)]
    pub queues: Option<u32>,
    /// NICs with one hub number are on one wire.
    pub hub: Option<u32>,
    /// Kernel-managed vectors (mqnic).
    #[serde(default)]
    pub managed: bool,
    /// It is on no wire. QEMU forwards a port of this machine to it, and drops everything else that the guest sends there.
    #[serde(default)]
    pub ssh: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Driver {
    Igb,
    E1000e,
    Vmxnet3,
    Virtio,
    Mqnic,
}

impl Driver {
    pub(crate) fn module(self) -> &'static str {
        match self {
            Driver::Igb => "igb",
            Driver::E1000e => "e1000e",
            Driver::Vmxnet3 => "vmxnet3",
            Driver::Virtio => "virtio_net",
            Driver::Mqnic => "mqnic",
        }
    }
}

/// Every host, by name.
pub(crate) fn all() -> Result<Vec<Host>> {
    in_dir(&paths::lab().join("hosts"))
}

/// The hosts of another directory: `lab/bench/`.
pub(crate) fn in_dir(dir: &Path) -> Result<Vec<Host>> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .with_context(|| dir.display().to_string())?
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files.iter().map(|p| load(p)).collect()
}

fn load(path: &Path) -> Result<Host> {
    let text = fs::read_to_string(path)?;
    let mut host: Host = toml::from_str(&text).with_context(|| path.display().to_string())?;
    host.name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    host.check().with_context(|| path.display().to_string())?;
    Ok(host)
}

/// The number of a node's own bus.
fn first_bus(node: u32) -> usize {
    32 + 48 * node as usize
}

impl Host {
    fn check(&self) -> Result<()> {
        let nodes = self.node.len();
        for n in &self.node {
            if n.distance.len() != nodes {
                bail!("a node needs one distance to each of the {nodes} nodes");
            }
        }
        for nic in &self.nic {
            if nic.node.is_some_and(|n| n as usize >= nodes) {
                bail!("{}: there is no node {:?}", nic.name, nic.node);
            }
            let wants = matches!(nic.driver, Driver::Virtio | Driver::Mqnic);
            if wants != nic.queues.is_some() {
                bail!("{}: `queues` is supported only for virtio and mqnic", nic.name);
            }
            if nic.ssh && (wants || nic.hub.is_some()) {
                bail!("{}: `ssh` is supported only for igb, e1000e and vmxnet3 without a hub", nic.name);
            }
        }
        if self.python && self.system != System::Systemd {
            bail!("`python` is supported only with systemd");
        }
        Ok(())
    }

    pub(crate) fn has_test_nic(&self) -> bool {
        self.nic.iter().any(|n| n.driver == Driver::Mqnic)
    }

    /// The same machine without test NICs, which need a module to be built.
    pub(crate) fn without_test_nics(mut self) -> Host {
        self.nic.retain(|n| n.driver != Driver::Mqnic);
        self
    }

    /// The test NICs; the guest numbers them in this order, and 0-1, 2-3 are pairs.
    fn test_nics(&self) -> Vec<&Nic> {
        self.nic.iter().filter(|n| n.driver == Driver::Mqnic).collect()
    }

    /// The PCI bus a NIC gets: the firmware numbers root ports in the order of their slots.
    fn bus(&self, nic: &Nic) -> usize {
        let order = self.plug_order();
        let same = order.iter().filter(|n| n.node == nic.node);
        let port = same.take_while(|n| n.name != nic.name).count();
        nic.node.map_or(0, first_bus) + 1 + port
    }

    /// Emulated NICs first, then the test NICs.
    fn plug_order(&self) -> Vec<&Nic> {
        let mut order = self.test_nics();
        order.splice(0..0, self.nic.iter().filter(|n| n.driver != Driver::Mqnic));
        order
    }

    /// The address the guest knows a NIC by.
    fn mac(&self, nic: &Nic) -> String {
        if nic.driver == Driver::Mqnic {
            let at = self.test_nics().iter().position(|n| n.name == nic.name);
            return format!("02:6d:71:00:00:{:02x}", at.unwrap_or(0));
        }
        let at = self.nic.iter().position(|n| n.name == nic.name);
        format!("52:54:00:00:00:{:02x}", at.unwrap_or(0) + 1)
    }

    /// `MAC NAME DRIVER QUEUES NODE` for each NIC; QUEUES is `-` where the driver decides.
    pub(crate) fn nic_table(&self) -> String {
        let line = |n: &Nic| {
            let queues = n.queues.map_or("-".to_string(), |q| q.to_string());
            let node = n.node.map_or("-1".to_string(), |q| q.to_string());
            let kind = if n.managed { "managed" } else { "-" };
            format!("{} {} {} {queues} {node} {kind}\n", self.mac(n), n.name, n.driver.module())
        };
        self.nic.iter().map(line).collect()
    }

    /// Properties of the machine for scenarios, as shell variables.
    pub(crate) fn guest_variables(&self) -> String {
        let list = |f: &dyn Fn(&Node) -> String| self.node.iter().map(f).collect::<Vec<_>>().join(" ");
        let tests = self.test_nics();
        let buses: Vec<String> = tests.iter().map(|n| self.bus(n).to_string()).collect();
        let managed = tests.iter().position(|n| n.managed).map_or(-1, |p| p as i64);
        format!(
            "HOST={}\nSYSTEM={}\nCPUS={}\nSOCKETS={}\nCORES={}\nTHREADS={}\nL3={}\nNODES={}\nNODE_CPUS='{}'\n\
             NODE_DISTANCES='{}'\nOFFLINE='{}'\nMQNIC_BUS={}\nMQNIC_MANAGED={managed}\n{}",
            self.name,
            match self.system {
                System::Busybox => "busybox",
                System::Systemd => "systemd",
            },
            self.cpu.count(),
            self.cpu.sockets,
            self.cpu.cores,
            self.cpu.threads,
            match self.cpu.l3 {
                L3::Core => "core",
                L3::Package => "package",
                L3::None => "none",
            },
            self.node.len(),
            list(&|n| n.cpus.clone()),
            list(&|n| n.distance.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
            self.offline.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
            buses.join(","),
            self.variables,
        )
    }

    /// Whether QEMU needs its own network namespace (for its tap).
    pub(crate) fn needs_tap(&self) -> bool {
        self.nic.iter().any(|n| n.driver == Driver::Virtio)
    }

    /// The machine part of the QEMU command line.
    pub(crate) fn qemu(&self) -> Vec<String> {
        let mut a: Vec<String> = Vec::new();
        let mut add = |flag: &str, value: String| a.extend([flag.to_string(), value]);
        let small_l3 = match self.cpu.l3 {
            L3::Core => ",smp-cache.0.cache=l3,smp-cache.0.topology=core",
            L3::Package | L3::None => "",
        };
        let machine = match self.arch {
            Arch::Amd64 => "q35",
            // With this interrupt controller, a vector of a PCI function is an LPI of the ITS.
            Arch::Arm64 => "virt,gic-version=3,its=on",
        };
        add("-machine", format!("{machine}{small_l3}"));
        add("-cpu", self.cpu.model.clone());
        let Cpu { sockets, cores, threads, .. } = self.cpu;
        let smp = format!("{},sockets={sockets},cores={cores},threads={threads}", self.cpu.count());
        add("-smp", smp);
        let total = match self.node.iter().map(|n| n.memory).sum() {
            0 => self.memory,
            sum => sum,
        };
        add("-m", format!("{total}M"));
        for (i, n) in self.node.iter().enumerate() {
            add("-object", format!("memory-backend-ram,id=m{i},size={}M", n.memory));
            let cpus = n.cpus.replace(',', ",cpus=");
            add("-numa", format!("node,nodeid={i},memdev=m{i},cpus={cpus}"));
        }
        for (i, n) in self.node.iter().enumerate() {
            for (j, d) in n.distance.iter().enumerate().filter(|(j, _)| *j != i) {
                add("-numa", format!("dist,src={i},dst={j},val={d}"));
            }
            // A device gets a node by having its own bus.
            let bus = first_bus(i as u32);
            add("-device", format!("pxb-pcie,id=pxb{i},bus_nr={bus},bus=pcie.0,numa_node={i}"));
        }
        for (i, nic) in self.plug_order().iter().enumerate() {
            let bus = nic.node.map_or("pcie.0".to_string(), |n| format!("pxb{n}"));
            let chassis = i + 1;
            add("-device", format!("pcie-root-port,id=rp{i},bus={bus},chassis={chassis}"));
            let mac = self.mac(nic);
            // No device has a boot ROM, because that only takes time.
            let plug = format!("bus=rp{i},netdev=n{i},mac={mac},romfile=");
            match nic.driver {
                Driver::Mqnic => {
                    let vectors = nic.queues.unwrap_or(1) + 1;
                    add("-device", format!("nvme,bus=rp{i},serial=mq{i},msix_qsize={vectors}"));
                }
                Driver::Virtio => {
                    let q = nic.queues.unwrap_or(1);
                    let tap = paths::lab().join("tap.sh").display().to_string().replace(',', ",,");
                    add(
                        "-netdev",
                        format!("tap,id=n{i},ifname=lab{i},queues={q},script={tap},downscript=no,vhost=off"),
                    );
                    let v = 2 * q + 2;
                    add("-device", format!("virtio-net-pci,{plug},mq=on,vectors={v},rss=on,hash=on"));
                }
                other => {
                    // A device without a peer still has a link.
                    let hub = nic.hub.unwrap_or(100 + i as u32);
                    let netdev = match nic.ssh {
                        true => format!("user,id=n{i},restrict=on,hostfwd=tcp:127.0.0.1:{}-:22", self.ssh_port),
                        false => format!("hubport,hubid={hub},id=n{i}"),
                    };
                    add("-netdev", netdev);
                    add("-device", format!("{},{plug}", other.module()));
                }
            }
        }
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_file_is_read_and_becomes_a_command_line() {
        let hosts = all().unwrap();
        assert!(hosts.iter().any(|h| h.name == "router16"));
        for h in hosts {
            assert!(h.qemu().contains(&"-smp".to_string()), "{}", h.name);
            assert_eq!(h.nic_table().lines().count(), h.nic.len());
        }
    }
}
