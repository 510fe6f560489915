//! `/sys/kernel/debug/irq/domains/VECTOR`: how many interrupt vectors each CPU has left.
//!
//! Only x86 has this domain, and only kernels with CONFIG_GENERIC_IRQ_DEBUGFS show it (arch/x86/kernel/apic/vector.c,
//! `x86_vector_debug_show`; kernel/irq/matrix.c, `irq_matrix_debug_show`).

use std::collections::BTreeMap;

use ringwise_model::CpuId;

use crate::ParseError;

const WHAT: &str = "interrupt vectors by CPU";

/// The column `avl` for each online CPU. Vectors that are reserved for managed interrupts are not in it.
pub fn parse(text: &str) -> Result<BTreeMap<CpuId, u32>, ParseError> {
    let is_header = |line: &str| line.trim_start().starts_with("| CPU | avl |");
    let mut rows = text.lines().enumerate().skip_while(|(_, line)| !is_header(line));
    rows.next().ok_or_else(|| ParseError::new(WHAT, text, "a header \"| CPU | avl |\""))?;
    let mut out = BTreeMap::new();
    for (i, line) in rows {
        let bad = || ParseError::at(WHAT, i + 1, line, "the numbers of a CPU and of its free vectors");
        let mut words = line.split_ascii_whitespace().map(str::parse::<u32>);
        let (Some(Ok(cpu)), Some(Ok(free))) = (words.next(), words.next()) else { return Err(bad()) };
        out.insert(CpuId(cpu), free);
    }
    if out.is_empty() { Err(ParseError::new(WHAT, text, "a row for each online CPU")) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest with Linux 6.9 whose CPU 2 took the interrupts of CPU 3, which went offline (reported with the series
    /// "genirq/cpuhotplug: Retry with cpu_online_mask when migration fails").
    const FULL: &str = "name:   VECTOR\n size:   0\n mapped: 529\n flags:  0x00000103\nOnline bitmaps:        7\n\
        Global available:    884\nGlobal reserved:       6\nTotal allocated:     539\n\
        System: 36: 0-19,21,50,128,236,243-244,246-255\n | CPU | avl | man | mac | act | vectors\n\
        \x20    0   147     0     0   55  32-49,51-87\n     2     0     0     0  202  32-49,51-127,129-235\n\
        \x20    4   202     1     0    0  \n";

    #[test]
    fn a_cpu_without_a_free_vector() {
        let free: Vec<(u32, u32)> = parse(FULL).unwrap().into_iter().map(|(c, n)| (c.0, n)).collect();
        assert_eq!(free, [(0, 147), (2, 0), (4, 202)]);
    }

    #[test]
    fn what_is_not_this_table_is_refused() {
        let header = FULL.lines().take(10).collect::<Vec<_>>().join("\n");
        for bad in ["", "name:   VECTOR\n", &header, &format!("{FULL}parent: x\n"), &FULL.replace("147", "-1")] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
