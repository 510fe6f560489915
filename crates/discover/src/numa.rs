//! NUMA nodes and their distances from `/sys/devices/system/node`.

use std::collections::BTreeMap;

use ringwise_kfmt::{ParseError, cpulist, cpumask, sysfs};
use ringwise_model::{CpuSet, Fact, Node, NodeId, Unread};

use crate::natural;
use crate::parts::part;
use crate::read::Reader;

const NODE: &str = "/sys/devices/system/node";

/// Every node directory. Absent: a kernel without NUMA. Unknown if the CPUs of a node are unknown, because its CPUs
/// would otherwise seem to have no node.
///
/// `memory`: read that as well.
pub(crate) fn nodes(r: &mut Reader, memory: bool) -> Fact<BTreeMap<NodeId, Node>> {
    let ids = match r.list(NODE) {
        Fact::Known(names) => natural::numbers(&names, "node"),
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(u) => return Fact::Unknown(u),
    };
    if ids.is_empty() {
        let u = Unread::new(NODE, None, "the directory contains no node");
        r.unread.push(u.clone());
        return Fact::Unknown(u);
    }
    let mut out = BTreeMap::new();
    for id in &ids {
        let dir = format!("{NODE}/node{id}");
        let list = format!("{dir}/cpulist");
        let mut cpus = r.parse(&list, cpulist::parse);
        if !cpus.is_known() {
            cpus = r.parse(&format!("{dir}/cpumap"), cpumask::parse);
        }
        let cpus = match cpus {
            Fact::Known(set) => set,
            Fact::Unknown(u) => return Fact::Unknown(u),
            Fact::Absent => {
                let u = Unread::new(list, Some(2), "neither cpulist nor cpumap exists");
                r.unread.push(u.clone());
                return Fact::Unknown(u);
            }
        };
        let distances = r.parse(&format!("{dir}/distance"), |t| distances(t, &ids));
        let memory =
            part(memory, "memory of the node", || r.parse_later(&format!("{dir}/meminfo"), sysfs::parse_node_memory));
        out.insert(NodeId(*id), Node { id: NodeId(*id), cpus, distances, memory });
    }
    let (mut all, mut twice) = (CpuSet::new(), CpuSet::new());
    for node in out.values() {
        twice = twice.union(&all.intersection(&node.cpus));
        all = all.union(&node.cpus);
    }
    if !twice.is_empty() {
        let cpus = if twice.len() == 1 { "CPU" } else { "CPUs" };
        let are = if twice.len() == 1 { "is" } else { "are" };
        r.unread.push(Unread::new(NODE, None, format!("{cpus} {twice} {are} listed by more than one node")));
    }
    Fact::Known(out)
}

/// One number per *online* node, in order of node numbers (drivers/base/node.c, node_read_distance).
fn distances(text: &str, ids: &[u32]) -> Result<BTreeMap<NodeId, u32>, ParseError> {
    let numbers = sysfs::parse_distances(text)?;
    if numbers.len() != ids.len() {
        return Err(ParseError::new("node distance", text, "one number for each node"));
    }
    Ok(ids.iter().map(|i| NodeId(*i)).zip(numbers).collect::<BTreeMap<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_belong_to_the_nodes_that_exist() {
        let d = distances("10 21 31\n", &[0, 2, 5]).unwrap();
        assert_eq!(d.into_iter().map(|(n, d)| (n.0, d)).collect::<Vec<_>>(), [(0, 10), (2, 21), (5, 31)]);
        assert!(distances("10 21", &[0]).is_err());
        assert!(distances("10 x", &[0, 1]).is_err());
    }
}
