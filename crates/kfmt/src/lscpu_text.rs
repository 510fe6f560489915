//! The output of `lscpu`, as in support bundles.

use std::collections::BTreeMap;

use ringwise_model::{CpuSet, NodeId};

use crate::cpulist;

/// The CPUs of each NUMA node: `NUMA node0 CPU(s):   0-5,48-53`. Empty if the text names none, or if a list cannot be read:
/// the CPUs of the others would be right, but a CPU would seem to have no node.
pub fn nodes(text: &str) -> BTreeMap<NodeId, CpuSet> {
    let mut out = BTreeMap::new();
    for line in text.lines() {
        let Some((number, rest)) = line.strip_prefix("NUMA node").and_then(|l| l.split_once(" CPU(s):")) else {
            continue;
        };
        match (number.parse(), cpulist::parse(rest.trim())) {
            (Ok(n), Ok(cpus)) => out.insert(NodeId(n), cpus),
            _ => return BTreeMap::new(),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_with_and_without_cpus() {
        // util-linux 2.23 and 2.37, and a node that has only memory.
        let text = "NUMA node(s):          2\nModel:                 2.1\nNUMA node0 CPU(s):     0-63\nNUMA node1 CPU(s):     \n";
        let found: Vec<_> = nodes(text).into_iter().map(|(n, c)| (n.0, c.to_string())).collect();
        assert_eq!(found, [(0, "0-63".to_string()), (1, String::new())]);
        assert_eq!(nodes("NUMA node7 CPU(s):                   42-47,90-95\n")[&NodeId(7)].len(), 12);
    }

    #[test]
    fn what_cannot_be_read_is_not_part_of_an_answer() {
        assert_eq!(nodes("NUMA node0 CPU(s): 0-3\nNUMA node1 CPU(s): 4-x\n"), BTreeMap::new());
        assert_eq!(nodes("NUMA nodes CPU(s): 0-3\n"), BTreeMap::new());
        assert_eq!(nodes("CPU(s): 4\n"), BTreeMap::new());
    }
}
