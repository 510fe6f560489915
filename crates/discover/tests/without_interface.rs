//! Network functions whose interface is in another network namespace, or that have none.

use std::sync::Arc;

use ringwise_discover::{Options, snapshot};
use ringwise_model::{Fact, FunctionWithoutInterface, Role};
use ringwise_sys::{Captured, Host};
use ringwise_testkit::dir::Dir;
use ringwise_testkit::tree;

use crate::common::Tree;
use crate::common::machine::{Machine, eth1_plan};

const HOST: &str = r#"
origin = "hand-written"
about = "an igb and a virtio interface in a container, a second igb here"
hostname = "edge"
kernel = "6.12.48"

[cpu]
packages = 1
cores = 8
threads = 1

[[nic]]
name = "eth0"
driver = "igb"
bus = "pci"
address = "0000:01:00.0"
node = 0
mac = "00:0d:b9:00:00:b0"
rx = 2
tx = 2
first_irq = 27

[[nic.vectors]]
name = "eth0-TxRx-{n}"
count = 2
lands = "0-1"

[[nic]]
name = "eth1"
driver = "igb"
bus = "pci"
address = "0000:02:00.0"
node = 0
mac = "00:0d:b9:00:00:b1"
rx = 2
tx = 2
first_irq = 32
other_namespace = true

[[nic.vectors]]
name = "eth1"
lands = "7"

[[nic.vectors]]
name = "eth1-TxRx-{n}"
count = 2
lands = "3-4"

[[nic.vectors]]
name = ""

[[nic]]
name = "eth2"
driver = "virtio_net"
bus = "virtio"
address = "0000:03:00.0"
node = 0
mac = "00:0d:b9:00:00:b2"
rx = 1
tx = 1
first_irq = 40
other_namespace = true

[[nic.vectors]]
name = "virtio0-config"
lands = "0"

[[nic.vectors]]
name = "virtio0-input.0"
lands = "5"

[[nic.vectors]]
name = "virtio0-output.0"
lands = "6"
"#;

fn cpus(f: &FunctionWithoutInterface) -> Vec<u32> {
    f.loaded_cpus().map(|c| c.0).collect()
}

#[test]
fn interfaces_of_another_namespace_are_recognized_by_their_functions() {
    let dir = Dir::new();
    let packed = tree::Tree::build(&tree::Host::parse(HOST).unwrap()).unwrap().tar_gz().unwrap();
    let file = dir.0.join("host.tar.gz");
    std::fs::write(&file, packed).unwrap();
    let host: Arc<dyn Host> = Arc::new(Captured::open(&file).unwrap());
    let s = snapshot(&host, &Options::all()).unwrap();
    assert!(s.nic("eth0").is_some() && s.nic("eth1").is_none() && s.nic("eth2").is_none());
    let [igb, virtio] = s.without_interface.as_slice() else { panic!("{:?}", s.without_interface) };
    assert_eq!((igb.bus_address.as_str(), igb.driver.as_str(), igb.in_other_namespace), ("0000:02:00.0", "igb", true));
    let roles: Vec<Role> = igb.vectors.known().unwrap().iter().map(|v| v.role.clone()).collect();
    let pair = |q| Role::Queues { rx: vec![q], tx: vec![q] };
    assert_eq!(roles, [Role::Control, pair(0), pair(1), Role::Idle]);
    assert_eq!(cpus(igb), [3, 4], "neither the control interrupt nor the one without a name");
    assert_eq!((virtio.driver.as_str(), virtio.in_other_namespace), ("virtio_net", true));
    assert_eq!(cpus(virtio), [5, 6]);
}

/// A machine with one interface here, and a function beside it.
fn machine() -> Tree {
    let mut m = Machine::new(8, 1);
    m.nic(&eth1_plan("igb"));
    let mut t = m.finish();
    function(&mut t, "0000:09:00.0", "0x020000", "mlx5_core");
    t
}

fn function(t: &mut Tree, address: &str, class: &str, driver: &str) {
    let dir = format!("/sys/bus/pci/devices/{address}");
    t.file(format!("{dir}/class"), format!("{class}\n"));
    t.link(format!("{dir}/driver"), format!("../../drivers/{driver}"));
    t.file(format!("{dir}/msi_irqs/900"), "msix\n");
    t.file("/sys/kernel/irq/900/actions", "mlx5_comp0@pci:0000:09:00.0\n");
    t.file("/proc/irq/900/smp_affinity_list", "0-7\n");
    t.file("/proc/irq/900/effective_affinity_list", "6\n");
    t.files.remove("/proc/interrupts");
}

fn found(t: &Tree) -> Vec<FunctionWithoutInterface> {
    snapshot(&t.shared(), &Options::all()).unwrap().without_interface
}

/// Without a directory `net`, the driver registered no interface: a function for vDPA or RDMA alone.
#[test]
fn a_driver_without_an_interface() {
    let mut t = machine();
    let all = found(&t);
    let [f] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((f.in_other_namespace, cpus(f)), (false, vec![6]));
    t.files.remove("/sys/kernel/irq/900/actions");
    assert_eq!(found(&t), [], "no interrupt in use, so nothing matters here");
    t.empty.insert("/sys/bus/pci/devices/0000:09:00.0/net".into());
    let all = found(&t);
    let [f] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((f.in_other_namespace, cpus(f)), (true, vec![]), "the interface is down in its namespace");
}

/// Only that the list cannot be read is known then, not that there are no such functions.
#[test]
fn an_unreadable_list_is_reported() {
    let mut t = machine();
    t.files.insert("/sys/bus/pci/devices".into(), Err(13));
    let s = snapshot(&t.shared(), &Options::all()).unwrap();
    assert_eq!(s.without_interface, []);
    assert!(s.unread.iter().any(|u| u.what == "/sys/bus/pci/devices" && u.errno == Some(13)), "{:?}", s.unread);
    t.files.remove("/sys/bus/pci/devices");
    let s = snapshot(&t.shared(), &Options::all()).unwrap();
    assert!(s.unread.iter().all(|u| u.what != "/sys/bus/pci/devices"), "{:?}", s.unread);
}

type Change = fn(&mut Tree);

#[test]
fn other_functions_are_left_out() {
    let cases: [(&str, Change); 4] = [
        ("its interface is here", |t| {
            t.file("/sys/bus/pci/devices/0000:09:00.0/net/eth9/mtu", "1500\n");
        }),
        ("a disk controller", |t| {
            t.file("/sys/bus/pci/devices/0000:09:00.0/class", "0x010802\n");
        }),
        ("a user-space driver", |t| {
            t.link("/sys/bus/pci/devices/0000:09:00.0/driver", "../../drivers/vfio-pci");
        }),
        ("its interface is that of a device below it", |t| {
            t.file("/sys/bus/pci/devices/0000:09:00.0/ssb0:0/net/eth9/mtu", "1500\n");
        }),
    ];
    for (what, change) in cases {
        let mut t = machine();
        change(&mut t);
        assert_eq!(found(&t), [], "{what}");
    }
}

/// The dump of links is that of this namespace, whichever namespace sysfs was mounted for.
#[test]
fn an_interface_of_the_dump_is_here() {
    let mut m = Machine::new(8, 1);
    m.nic(&eth1_plan("igb"));
    let mut t = m.finish();
    let address = eth1_plan("igb").bus;
    function(&mut t, address, "0x020000", "igb");
    t.empty.insert(format!("/sys/bus/pci/devices/{address}/net"));
    assert_eq!(found(&t), []);
}

#[test]
fn a_function_without_interrupts() {
    let mut t = machine();
    t.files.remove("/sys/bus/pci/devices/0000:09:00.0/msi_irqs/900");
    t.empty.insert("/sys/bus/pci/devices/0000:09:00.0/net".into());
    let all = found(&t);
    assert_eq!(all.first().map(|f| f.vectors.clone()), Some(Fact::Known(Vec::new())));
}
