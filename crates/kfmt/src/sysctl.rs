//! Sysctls of the network core that ringwise sets: their names, and what the kernel accepts for each
//! (net/core/sysctl_net_core.c, Documentation/admin-guide/sysctl/net.rst).

/// The content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SysctlKind {
    /// A number of at least this; the kernel stores it in an `int`.
    Number {
        /// Smallest value that the kernel accepts.
        least: u32,
    },
    /// The length of a table.
    PowerOfTwo,
    /// CPUs as hexadecimal digits, with commas between groups of at most eight.
    Mask,
}

/// It is read separately, because reading it may hang.
pub const RPS_DEFAULT_MASK: &str = "net.core.rps_default_mask";
/// It has a setting of its own.
pub const RPS_SOCK_FLOW_ENTRIES: &str = "net.core.rps_sock_flow_entries";

/// Two ticks at 1000 Hz. The kernel refuses less than two of its own ticks (commits of 2025, also in stable kernels);
/// no file shows how long these are. Older kernels round up to whole ticks.
const TWO_TICKS_USECS: u32 = 2000;

/// In the order of their names. Since 6.14, and the stable kernels of that time, the kernel accepts no number below the
/// least of a weight; earlier kernels do.
pub const ALL: &[(&str, SysctlKind)] = &[
    ("net.core.busy_poll", SysctlKind::Number { least: 0 }),
    ("net.core.busy_read", SysctlKind::Number { least: 0 }),
    ("net.core.dev_weight", SysctlKind::Number { least: 1 }),
    ("net.core.dev_weight_rx_bias", SysctlKind::Number { least: 1 }),
    ("net.core.dev_weight_tx_bias", SysctlKind::Number { least: 1 }),
    ("net.core.flow_limit_cpu_bitmap", SysctlKind::Mask),
    ("net.core.flow_limit_table_len", SysctlKind::PowerOfTwo),
    ("net.core.netdev_budget", SysctlKind::Number { least: 0 }),
    ("net.core.netdev_budget_usecs", SysctlKind::Number { least: TWO_TICKS_USECS }),
    ("net.core.netdev_max_backlog", SysctlKind::Number { least: 0 }),
    ("net.core.qdisc_max_burst", SysctlKind::Number { least: 0 }),
    (RPS_DEFAULT_MASK, SysctlKind::Mask),
    ("net.core.skb_defer_max", SysctlKind::Number { least: 0 }),
    ("net.core.txq_reselection_ms", SysctlKind::Number { least: 0 }),
];

/// Names that recordings of earlier versions lack, and most kernels in use: `skb_defer_max` since 5.19, the others since
/// 6.19 (commits ffe4ccd359d0 and 2ddef3462b3a). A snapshot of such a recording does not list them. The kernel accepts
/// negative numbers for the last two as well, which have no use.
pub const LATER: [&str; 3] = ["net.core.qdisc_max_burst", "net.core.skb_defer_max", "net.core.txq_reselection_ms"];

const MOST: u32 = i32::MAX as u32;
/// Larger ones do not fit the `int`.
const LONGEST_TABLE: u32 = 1 << 30;

impl SysctlKind {
    /// Whether the kernel accepts `value`; numbers with a leading zero, which it reads as octal, are refused.
    pub fn good(self, value: &str) -> bool {
        // The kernel reads 010 as eight.
        let plain = value == "0" || !value.starts_with('0');
        let number = || value.parse::<u32>().ok().filter(|_| plain && value.bytes().all(|b| b.is_ascii_digit()));
        match self {
            Self::Number { least } => number().is_some_and(|n| (least..=MOST).contains(&n)),
            Self::PowerOfTwo => number().is_some_and(|n| n.is_power_of_two() && n <= LONGEST_TABLE),
            Self::Mask => value
                .split(',')
                .all(|group| (1..=8).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit())),
        }
    }

    /// The text after "expected".
    pub fn right(self) -> String {
        match self {
            Self::Number { least } if least == TWO_TICKS_USECS => {
                format!("microseconds from {least} to {MOST}: at least two kernel ticks, {least} us at 1000 Hz")
            }
            Self::Number { least } => format!("a number from {least} to {MOST}"),
            Self::PowerOfTwo => format!("a power of two from 1 to {LONGEST_TABLE}"),
            Self::Mask => "CPUs as hex digits, \"f\" or \"1,00000000\"".into(),
        }
    }
}

/// `None`: ringwise does not set it.
pub fn kind_of(name: &str) -> Option<SysctlKind> {
    ALL.iter().find(|(n, _)| *n == name).map(|x| x.1)
}

/// Initial values of the numbers. Several: they differ between kernel versions, or with the kernel's ticks.
///
/// net/core/dev.c (`netdev_budget`, `weight_p`, `netdev_flow_limit_table_len` and their neighbours; since 6.9 most are in
/// net/core/hotdata.c); net/core/net_namespace.c, `preinit_net_sysctl`; Documentation/admin-guide/sysctl/net.rst. The time
/// is two ticks, of 100, 250, 300 or 1000 Hz.
const DEFAULTS: &[(&str, &[u32])] = &[
    ("net.core.busy_poll", &[0]),
    ("net.core.busy_read", &[0]),
    ("net.core.dev_weight", &[64]),
    ("net.core.dev_weight_rx_bias", &[1]),
    ("net.core.dev_weight_tx_bias", &[1]),
    ("net.core.flow_limit_table_len", &[4096]),
    ("net.core.netdev_budget", &[300]),
    ("net.core.netdev_budget_usecs", &[20_000, 8000, 6666, 2000]),
    ("net.core.netdev_max_backlog", &[1000]),
    ("net.core.qdisc_max_burst", &[1000]),
    ("net.core.skb_defer_max", &[64, 128]),
    ("net.core.txq_reselection_ms", &[1000]),
];

/// Whether the kernel has this value if no program sets it. `None`: ringwise does not set this sysctl, or the value is neither a
/// number nor a mask.
pub fn is_default(name: &str, value: &str) -> Option<bool> {
    let value = value.trim();
    match kind_of(name)? {
        SysctlKind::Mask if value.bytes().all(|b| b.is_ascii_hexdigit() || b == b',') => {
            Some(value.bytes().all(|b| matches!(b, b'0' | b',')))
        }
        SysctlKind::Mask => None,
        SysctlKind::Number { .. } | SysctlKind::PowerOfTwo => {
            let (_, defaults) = DEFAULTS.iter().find(|(n, _)| *n == name)?;
            Some(defaults.contains(&value.parse().ok()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_kernel_that_no_program_has_set() {
        for (name, value, expected) in [
            ("netdev_budget", "300\n", Some(true)),
            ("netdev_budget", "600", Some(false)),
            ("netdev_budget_usecs", "8000", Some(true)),
            ("netdev_budget_usecs", "4000", Some(false)),
            ("flow_limit_cpu_bitmap", "00000000,00000000", Some(true)),
            ("rps_default_mask", "f", Some(false)),
            ("rps_default_mask", "0-3", None),
            ("netdev_budget", "many", None),
            ("somaxconn", "4096", None),
        ] {
            assert_eq!(is_default(&format!("net.core.{name}"), value), expected, "{name} {value}");
        }
        let numbers = ALL.iter().filter(|(_, t)| !matches!(t, SysctlKind::Mask)).map(|(name, _)| *name);
        assert!(numbers.eq(DEFAULTS.iter().map(|(name, _)| *name)));
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        for (name, good, bad) in [
            (
                "netdev_budget",
                &["0", "300", "2147483647"][..],
                &["abc", "", "-1", "2147483648", "0600", "3 4", "+3"][..],
            ),
            ("netdev_budget_usecs", &["2000", "8000"], &["1", "1999", "99999999999"]),
            ("dev_weight", &["1", "64"], &["0", "abc"]),
            ("dev_weight_rx_bias", &["1"], &["0"]),
            ("netdev_max_backlog", &["1000"], &["99999999999"]),
            ("flow_limit_table_len", &["1", "4096", "1073741824"], &["0", "1000", "2147483648"]),
            ("rps_default_mask", &["f", "0", "ffffffff,00000001"], &["zz", "", "0xf", "1,,2", "123456789", "f "]),
            ("flow_limit_cpu_bitmap", &["3"], &["0-3"]),
            ("busy_poll", &["0", "50"], &["x"]),
            ("qdisc_max_burst", &["0", "1000"], &["-1"]),
            ("skb_defer_max", &["0", "128"], &["-1"]),
            ("txq_reselection_ms", &["0", "1000"], &["1.5"]),
        ] {
            let t = kind_of(&format!("net.core.{name}")).unwrap_or_else(|| panic!("{name}"));
            good.iter().for_each(|v| assert!(t.good(v), "{name} {v}"));
            bad.iter().for_each(|v| assert!(!t.good(v), "{name} {v}"));
        }
        assert_eq!(kind_of("net.ipv4.ip_forward"), None);
        assert!(ALL.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(LATER.iter().all(|n| kind_of(n).is_some()));
    }
}
