//! The line of virtual functions.

use std::collections::BTreeMap;

use ringwise_model::words::one_line;
use ringwise_model::{Fact, FunctionHolder, Nic, VirtualFunction};
use ringwise_text::{numbers, plural};

use super::facts::silent;

/// `4 of at most 7: eth5 (VF 0); vfio-pci (VFs 1-2); no driver (VF 3)`. `None`: there are none.
pub(crate) fn line(n: &Nic) -> Option<String> {
    let all = match &n.virtual_functions {
        Fact::Known(all) if !all.list.is_empty() => all,
        f @ Fact::Unknown(u) if !silent(f) => return Some(format!("unknown ({})", u.why)),
        _ => return None,
    };
    let mut groups: BTreeMap<(u8, String), Vec<u32>> = BTreeMap::new();
    for f in &all.list {
        groups.entry(holder(f)).or_default().push(f.number);
    }
    let texts: Vec<String> = groups
        .into_iter()
        .map(|((_, who), which)| format!("{who} ({} {})", if which.len() == 1 { "VF" } else { "VFs" }, numbers(which)))
        .collect();
    let of = all.max.known().map(|max| format!(" of at most {max}")).unwrap_or_default();
    Some(format!("{}{of}: {}", plural(all.list.len(), "virtual function"), texts.join("; ")))
}

/// Rank, and who uses it.
fn holder(f: &VirtualFunction) -> (u8, String) {
    let (rank, text) = match &f.holder {
        Fact::Known(FunctionHolder::Interfaces { names }) => (0, names.join(" ")),
        Fact::Known(FunctionHolder::OtherNamespace { driver }) => (1, format!("{driver} in another network namespace")),
        Fact::Known(FunctionHolder::UserSpace { driver }) => (2, format!("{driver}: a virtual machine or program")),
        Fact::Known(FunctionHolder::Driver { driver }) => (3, format!("{driver} without an interface")),
        Fact::Absent => (4, "no driver".into()),
        Fact::Unknown(u) => (5, format!("unknown: {}", u.why)),
    };
    (rank, one_line(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use ringwise_model::VirtualFunctions;
    use ringwise_testkit::machines::plain_nic;

    use super::*;

    #[test]
    fn functions_by_who_uses_them() {
        let mut nic = plain_nic("eth1", 3);
        assert_eq!(line(&nic), None, "not read");
        let driver = |d: &str| d.to_string();
        let holders = [
            Fact::Known(FunctionHolder::UserSpace { driver: driver("vfio-pci") }),
            Fact::Known(FunctionHolder::UserSpace { driver: driver("vfio-pci") }),
            Fact::Known(FunctionHolder::Interfaces { names: vec!["eth1v2".into()] }),
            Fact::Absent,
            Fact::Known(FunctionHolder::OtherNamespace { driver: driver("igbvf") }),
        ];
        let list: Vec<VirtualFunction> = (0..)
            .zip(holders)
            .map(|(number, holder)| VirtualFunction { number, bus_address: format!("0000:05:10.{number}"), holder })
            .collect();
        nic.virtual_functions = Fact::Known(VirtualFunctions { max: Fact::Known(7), list });
        assert_eq!(
            line(&nic).as_deref(),
            Some(
                "5 virtual functions of at most 7: eth1v2 (VF 2); igbvf in another network namespace (VF 4); vfio-pci: a \
                 virtual machine or program (VFs 0-1); no driver (VF 3)"
            )
        );
        nic.virtual_functions = Fact::Known(VirtualFunctions { max: Fact::Known(7), list: Vec::new() });
        assert_eq!(line(&nic), None);
        nic.virtual_functions = Fact::unknown("sriov_numvfs", "needs root");
        assert_eq!(line(&nic).as_deref(), Some("unknown (needs root)"));
    }
}
