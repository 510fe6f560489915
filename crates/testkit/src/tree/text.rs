//! Lists, masks and relative links as the kernel prints them.

/// `0-3,8` for sorted numbers (lib/vsprintf.c, `%*pbl`).
pub(super) fn list(cpus: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut i = 0;
    while i < cpus.len() {
        let mut j = i;
        while j + 1 < cpus.len() && cpus[j + 1] == cpus[j] + 1 {
            j += 1;
        }
        parts.push(if i == j { cpus[i].to_string() } else { format!("{}-{}", cpus[i], cpus[j]) });
        i = j + 1;
    }
    parts.join(",")
}

/// Hex in groups of 32 bits with commas, `bits` wide (`%*pb`).
pub(super) fn mask(cpus: &[u32], bits: u32) -> String {
    let groups = bits.div_ceil(32).max(1) as usize;
    let mut words = vec![0u32; groups];
    for c in cpus {
        words[*c as usize / 32] |= 1 << (c % 32);
    }
    let top = (bits - (groups as u32 - 1) * 32).div_ceil(4) as usize;
    let mut out = format!("{:0top$x}", words[groups - 1]);
    for w in words.iter().rev().skip(1) {
        out.push_str(&format!(",{w:08x}"));
    }
    out
}

/// Numbers of a list such as `0-3,8`, sorted.
pub(super) fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let mut out = Vec::new();
    for part in text.split(',').filter(|p| !p.is_empty()) {
        let number = |s: &str| s.parse::<u32>().map_err(|_| format!("{text:?} is not a list of CPUs"));
        match part.split_once('-') {
            Some((a, b)) => out.extend(number(a)?..=number(b)?),
            None => out.push(number(part)?),
        }
    }
    out.sort_unstable();
    out.dedup();
    Ok(out)
}

/// The way from the directory of `from` to `to`; as in sysfs it always ends in the target's own name.
pub(super) fn relative(from: &str, to: &str) -> String {
    let dir: Vec<&str> = from.rsplit_once('/').map_or("", |p| p.0).split('/').collect();
    let to: Vec<&str> = to.split('/').collect();
    let common = dir.iter().zip(&to[..to.len() - 1]).take_while(|(a, b)| a == b).count();
    let mut parts = vec![".."; dir.len() - common];
    parts.extend(&to[common..]);
    parts.join("/")
}

/// Whether `path` is `pattern` or below it; a part `*` stands for any one part.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    pattern.split('/').all(|p| parts.next().is_some_and(|q| p == "*" || p == q))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_kernel_prints() {
        assert_eq!(list(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(list(&[]), "");
        assert_eq!(mask(&[0, 47], 48), "8000,00000001");
        assert_eq!(mask(&[], 6), "00");
        assert_eq!(mask(&[0, 1, 31], 64), "00000000,80000003");
        assert_eq!(numbers("0-3,8").unwrap(), [0, 1, 2, 3, 8]);
        assert!(numbers("a").is_err());
    }

    #[test]
    fn links_and_patterns() {
        assert_eq!(relative("/sys/class/net/eth0", "/sys/devices/pci0/d/net/eth0"), "../../devices/pci0/d/net/eth0");
        assert_eq!(relative("/sys/devices/p/d/net/eth0/device", "/sys/devices/p/d"), "../../../d");
        assert!(matches("/proc/irq/*/node", "/proc/irq/3/node") && matches("/proc/irq", "/proc/irq/3/node"));
        assert!(!matches("/proc/irq/3", "/proc/irq/30/node"));
    }
}
