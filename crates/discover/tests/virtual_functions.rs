//! The virtual functions of an interface, and who uses them.

use ringwise_discover::{Options, Parts, snapshot};
use ringwise_model::{Fact, FunctionHolder, Nic, VirtualFunctions};

use crate::common::Tree;
use crate::common::machine::{Machine, eth1_plan};

const FUNCTION: &str = "/sys/devices/pci0000:00/0000:03:00.0";

fn machine() -> Tree {
    let mut m = Machine::new(8, 1);
    m.nic(&eth1_plan("igb"));
    m.finish()
}

fn read(t: &Tree) -> Nic {
    let options = Options { parts: Parts::ALL, ..Options::all() };
    snapshot(&t.shared(), &options).unwrap().nic("eth1").unwrap().clone()
}

fn functions(t: &Tree) -> VirtualFunctions {
    read(t).virtual_functions.known().unwrap().clone()
}

fn add(t: &mut Tree, number: u32, driver: Option<&str>) -> String {
    let dir = format!("/sys/devices/pci0000:00/0000:03:10.{number}");
    t.link(format!("{FUNCTION}/virtfn{number}"), format!("../0000:03:10.{number}"));
    t.link(format!("{dir}/physfn"), "../0000:03:00.0");
    t.file(format!("{dir}/class"), "0x020000\n");
    if let Some(driver) = driver {
        t.link(format!("{dir}/driver"), format!("../../../bus/pci/drivers/{driver}"));
    }
    dir
}

#[test]
fn each_function_has_its_holder() {
    let mut t = machine();
    t.file(format!("{FUNCTION}/sriov_numvfs"), "5\n").file(format!("{FUNCTION}/sriov_totalvfs"), "7\n");
    let here = add(&mut t, 0, Some("igbvf"));
    t.file(format!("{here}/net/eth1v0/mtu"), "1500\n");
    add(&mut t, 1, Some("vfio-pci"));
    let away = add(&mut t, 2, Some("igbvf"));
    t.empty.insert(format!("{away}/net"));
    add(&mut t, 3, None);
    add(&mut t, 10, Some("mlx5_core"));
    let found = functions(&t);
    assert_eq!(found.max, Fact::Known(7));
    let holders: Vec<(u32, &str, Fact<FunctionHolder>)> =
        found.list.iter().map(|f| (f.number, f.bus_address.as_str(), f.holder.clone())).collect();
    let igbvf = || "igbvf".to_string();
    assert_eq!(
        holders,
        [
            (0, "0000:03:10.0", Fact::Known(FunctionHolder::Interfaces { names: vec!["eth1v0".into()] })),
            (1, "0000:03:10.1", Fact::Known(FunctionHolder::UserSpace { driver: "vfio-pci".into() })),
            (2, "0000:03:10.2", Fact::Known(FunctionHolder::OtherNamespace { driver: igbvf() })),
            (3, "0000:03:10.3", Fact::Absent),
            (10, "0000:03:10.10", Fact::Known(FunctionHolder::Driver { driver: "mlx5_core".into() })),
        ]
    );
}

#[test]
fn none_exist_and_none_are_possible() {
    let mut t = machine();
    assert_eq!(read(&t).virtual_functions, Fact::Absent);
    t.file(format!("{FUNCTION}/sriov_numvfs"), "0\n");
    assert_eq!(functions(&t).list, []);
}

#[test]
fn a_count_that_cannot_be_read_is_unknown() {
    let mut t = machine();
    t.error(format!("{FUNCTION}/sriov_numvfs"), 13);
    let found = read(&t);
    assert!(matches!(&found.virtual_functions, Fact::Unknown(u) if u.what.ends_with("sriov_numvfs")));
    assert!(found.unread.iter().any(|u| u.what.ends_with("sriov_numvfs")));
}
