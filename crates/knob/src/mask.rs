//! Formats sets of CPUs and queues as arguments of commands.

use ringwise_model::CpuSet;

/// The kernel's hex mask in groups of 32 bits separated by commas, in the shortest form that every kernel accepts.
pub(crate) fn mask(cpus: &CpuSet) -> String {
    let Some(last) = cpus.last() else {
        return "0".to_string();
    };
    let groups = last.0 / 32 + 1;
    let mut words = vec![0u32; groups as usize];
    for c in cpus.iter() {
        words[(c.0 / 32) as usize] |= 1 << (c.0 % 32);
    }
    let mut out = String::new();
    for (i, w) in words.iter().rev().enumerate() {
        if i == 0 {
            out.push_str(&format!("{w:x}"));
        } else {
            out.push_str(&format!(",{w:08x}"));
        }
    }
    out
}
