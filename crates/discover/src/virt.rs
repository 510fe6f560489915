//! Whether this is a virtual machine, from data that is cheap to read.

use ringwise_model::{Fact, Unread};

use crate::read::Reader;

/// Start of DMI `sys_vendor` or `product_name` → name. Vendors that also sell bare metal are not in this list.
const DMI: &[(&str, &str)] = &[
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("Xen", "xen"),
    ("innotek GmbH", "virtualbox"),
    ("VirtualBox", "virtualbox"),
    ("Parallels", "parallels"),
    ("Bochs", "bochs"),
    ("BHYVE", "bhyve"),
    ("KVM", "kvm"),
    ("OpenStack", "openstack"),
    ("Standard PC (", "qemu"),
    ("Virtual Machine", "hyperv"),
    ("Google Compute Engine", "google"),
    ("DigitalOcean", "kvm"),
];

/// Vendors of both guests and bare metal, where the CPU flag decides.
const CLOUDS: &[(&str, &str)] = &[
    ("Amazon EC2", "amazon"),
    ("Google", "google"),
    ("Alibaba Cloud", "alibaba"),
    ("Microsoft Corporation", "hyperv"),
    ("Hetzner", "kvm"),
    ("Scaleway", "kvm"),
];

/// `xen`, `qemu`, `vmware`, …; `unnamed` if only the CPU flag shows it. Absent: bare metal, as far as can be seen.
/// Without `cpuinfo` that file is read only on a cloud, where the vendor alone does not decide.
pub(crate) fn hypervisor(r: &mut Reader, cpuinfo: bool) -> Fact<String> {
    if let Ok(t) = r.host.read_text("/sys/hypervisor/type")
        && !t.is_empty()
    {
        return Fact::Known(t);
    }
    let mut firmware = false;
    for file in ["/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"] {
        let Ok(t) = r.host.read_text(file) else { continue };
        firmware = true;
        if let Some((_, name)) = DMI.iter().find(|(start, _)| t.starts_with(start)) {
            return Fact::Known((*name).to_string());
        }
    }
    // On x86 the firmware of a guest may not show it, but the CPU flag does. The file is long, and slow to read on
    // large bare-metal hosts, so it is read only if the firmware shows nothing, or the name of a cloud.
    let vendor = r.host.read_text("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let cloud = CLOUDS.iter().find(|(start, _)| vendor.starts_with(start)).map(|(_, name)| *name);
    if firmware && cloud.is_none() {
        return Fact::Absent;
    }
    let what = "/proc/cpuinfo";
    if !cpuinfo && cloud.is_none() {
        return Fact::not_requested(what);
    }
    match r.host.read_text(what) {
        Ok(text) => match text.lines().find(|l| l.starts_with("flags")) {
            Some(l) if l.split_whitespace().any(|f| f == "hypervisor") => {
                Fact::Known(cloud.unwrap_or("unnamed").to_string())
            }
            Some(_) => Fact::Absent,
            None => {
                r.note(Fact::Unknown(Unread::new(what, None, "neither firmware nor CPU flags indicate a hypervisor")))
            }
        },
        Err(e) => r.note(Fact::Unknown(crate::read::unread(what, &e))),
    }
}
