//! The virtual functions of an interface's device, and who uses them.

use ringwise_kfmt::sysfs;
use ringwise_model::order::Order;
use ringwise_model::{Fact, FunctionHolder, VirtualFunction, VirtualFunctions};
use ringwise_sys::Host;

use crate::natural;
use crate::read::{self, Reader};
use crate::userspace_drivers::is_user_space;
use crate::without_interface::interface_place;

/// `dir`: `/sys/class/net/DEV`. Absent: the device is no physical function of SR-IOV.
pub(crate) fn read(r: &mut Reader, dir: &str) -> Fact<VirtualFunctions> {
    let device = format!("{dir}/device");
    // The kernel has the files of every function with the capability, also if its driver cannot create functions.
    r.parse_later(&format!("{device}/sriov_numvfs"), sysfs::parse_u32).and_then(|count| {
        let max = r.parse_later(&format!("{device}/sriov_totalvfs"), sysfs::parse_u32);
        if count == 0 {
            return Fact::Known(VirtualFunctions { max, list: Vec::new() });
        }
        r.list(&device).and_then(|entries| {
            let mut list = Vec::new();
            for n in natural::numbers(&entries, "virtfn") {
                match one(r.host, &device, n) {
                    Fact::Known(f) => list.push(f),
                    // It was removed in the meantime.
                    Fact::Absent => {}
                    Fact::Unknown(u) => return Fact::Unknown(u),
                }
            }
            Fact::Known(VirtualFunctions { max, list })
        })
    })
}

/// Absent: there is no function of this number.
fn one(host: &dyn Host, device: &str, number: u32) -> Fact<VirtualFunction> {
    let dir = format!("{device}/virtfn{number}");
    match host.readlink(&dir) {
        Ok(target) => match target.rsplit('/').next().filter(|a| !a.is_empty()) {
            Some(address) => {
                Fact::Known(VirtualFunction { number, bus_address: address.to_string(), holder: holder(host, &dir) })
            }
            None => Fact::unknown(dir, "the link has no target"),
        },
        Err(e) => read::failed(&dir, &e),
    }
}

fn holder(host: &dyn Host, dir: &str) -> Fact<FunctionHolder> {
    let link = format!("{dir}/driver");
    let driver = match host.readlink(&link) {
        Ok(target) => target.rsplit('/').next().unwrap_or_default().to_string(),
        Err(e) => return read::failed(&link, &e),
    };
    if is_user_space(&driver) {
        return Fact::Known(FunctionHolder::UserSpace { driver });
    }
    let Some(place) = interface_place(host, dir) else {
        return Fact::unknown(format!("{dir}/net"), "not readable");
    };
    let driver = match place.driver(host, dir) {
        Fact::Known(of_child) => of_child,
        _ => driver,
    };
    Fact::Known(match place.interfaces {
        None => FunctionHolder::Driver { driver },
        Some(names) if names.is_empty() => FunctionHolder::OtherNamespace { driver },
        Some(mut names) => {
            names.order_by(|a, b| natural::compare(a, b));
            FunctionHolder::Interfaces { names }
        }
    })
}
