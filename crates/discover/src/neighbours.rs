//! The other interfaces of the host, as far as they matter for assigning interrupts.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use ringwise_sys::Host;

use crate::device;
use crate::read::Reader;

/// All interfaces that may have a device of their own.
pub(crate) struct Neighbours {
    names: Vec<String>,
    identities: OnceLock<Vec<Identity>>,
}

struct Identity {
    name: String,
    /// `None`: not known.
    driver: Option<String>,
    bus_address: Option<String>,
}

impl Neighbours {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self { names, identities: OnceLock::new() }
    }

    /// Read when the first interface needs it. An interface with an address never does.
    fn identities(&self, host: &dyn Host) -> &[Identity] {
        self.identities.get_or_init(|| {
            let identity = |name: &String| {
                let d = device::device(&mut Reader::new(host), name);
                Identity { name: name.clone(), driver: d.driver.known().cloned(), bus_address: d.bus_address }
            };
            self.names.iter().map(identity).collect()
        })
    }

    /// Interfaces other than `name` that may use `driver`.
    fn alike(&self, host: &dyn Host, name: &str, driver: Option<&str>) -> impl Iterator<Item = &Identity> {
        let same = move |d: Option<&str>| d.is_none() || driver.is_none() || d == driver;
        self.identities(host).iter().filter(move |i| i.name != name && same(i.driver.as_deref()))
    }

    /// Whether no other interface uses `driver`.
    pub(crate) fn is_only(&self, host: &dyn Host, name: &str, driver: Option<&str>) -> bool {
        self.alike(host, name, driver).next().is_none()
    }

    /// Which of the addresses in interrupt names belongs to `name`, whose own address is unknown: the only one that no
    /// other interface has. `None`: several are left, or another interface of the driver has an unknown address too.
    pub(crate) fn address_of(
        &self,
        host: &dyn Host,
        name: &str,
        driver: Option<&str>,
        found: impl Iterator<Item = String>,
    ) -> Option<String> {
        let mut left: Vec<String> = found.collect::<BTreeSet<_>>().into_iter().collect();
        left.sort();
        for other in self.alike(host, name, driver) {
            let address = other.bus_address.as_ref()?;
            left.retain(|a| a != address);
        }
        (left.len() == 1).then(|| left.remove(0))
    }
}

/// The address in a name such as `mlx5_comp0@pci:0000:3b:00.0`.
pub(crate) fn address_in(name: &str) -> Option<&str> {
    let (_, address) = name.split_once('@')?;
    Some(address.strip_prefix("pci:").unwrap_or(address))
}
