//! Interrupt moderation: of the device (`ethtool -C`) and of single queues (`ethtool --per-queue`).

use std::collections::BTreeMap;

use ringwise_model::errno::{EINVAL, EOPNOTSUPP, ERANGE};
use ringwise_model::{Coalesce, Fact, Nic, Snapshot};

use crate::{Address, Descriptor, Family, Match, NotProjected, Reaction, Setting, known, nic};

pub(crate) struct CoalesceFamily;

impl Descriptor for CoalesceFamily {
    fn addresses(&self, nic: &Nic) -> Vec<Address> {
        let mut out = vec![Address::Coalesce { dev: nic.dev.name.clone() }];
        out.extend(queue_addresses(nic));
        out
    }

    fn label(&self, address: &Address) -> String {
        match address {
            Address::QueueCoalesce { dev, queue } => format!("{dev} moderation queue {queue}"),
            other => format!("{} moderation", other.dev().unwrap_or_default()),
        }
    }

    fn live(&self, s: &Snapshot, address: &Address) -> Fact<Setting> {
        match (address.dev().and_then(|d| s.nic(d)), address) {
            (Some(n), Address::Coalesce { .. }) => live(n),
            (Some(n), Address::QueueCoalesce { queue, .. }) => live_queue(n, *queue),
            _ => Fact::Absent,
        }
    }

    fn equivalent(&self, s: &Snapshot, want: &Setting, got: &Setting) -> Match {
        match (want, got) {
            (
                Setting::Coalesce { dev, params } | Setting::QueueCoalesce { dev, params, .. },
                Setting::Coalesce { params: got, .. } | Setting::QueueCoalesce { params: got, .. },
            ) => compare(s.nic(dev).and_then(|n| n.driver.known()).map(String::as_str), params, got),
            _ => Match::Differs,
        }
    }

    fn project(&self, s: &mut Snapshot, setting: &Setting) -> Result<(), NotProjected> {
        match setting {
            Setting::Coalesce { dev, params } => project(nic(s, dev)?, params),
            Setting::QueueCoalesce { dev, queue, params } => project_queue(nic(s, dev)?, *queue, params),
            _ => Err(NotProjected::OTHER_FAMILY),
        }
    }

    fn react(&self, address: &Address, errno: Option<i32>) -> Option<(Reaction, &'static str)> {
        match (address, errno?) {
            (_, EINVAL | ERANGE) => Some((
                Reaction::Refused,
                "the driver does not accept this value, this parameter, or this combination of parameters",
            )),
            (Address::QueueCoalesce { .. }, EOPNOTSUPP) => {
                Some((Reaction::Refused, "the driver moderates only the whole device, or not this queue separately"))
            }
            _ => None,
        }
    }

    /// A value for the device is written to each of its queues.
    fn invalidates(&self, address: &Address) -> &'static [Family] {
        match address {
            Address::Coalesce { .. } => &[Family::Coalesce],
            _ => &[],
        }
    }

    fn value_text(&self, setting: &Setting) -> String {
        match setting {
            Setting::Coalesce { params, .. } | Setting::QueueCoalesce { params, .. } => text(params),
            _ => String::new(),
        }
    }

    fn command(&self, _: &Snapshot, setting: &Setting) -> Option<String> {
        match setting {
            Setting::Coalesce { dev, params } => Some(command(dev, params)),
            Setting::QueueCoalesce { dev, queue, params } => Some(queue_command(dev, *queue, params)),
            _ => None,
        }
    }
}

/// Moderation of the device in this snapshot.
pub fn live(nic: &Nic) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.coalesce.as_ref().map(|c: &Coalesce| Setting::Coalesce { dev, params: applicable_params(nic, &c.0) })
}

/// The parameters in `params` that the device has with its current queues: igb with one interrupt for both directions
/// reports 0 for `tx-usecs` and refuses every value (`igb_get_coalesce`, `igb_set_coalesce`). Seen in the lab.
pub fn applicable_params(nic: &Nic, params: &BTreeMap<String, u32>) -> BTreeMap<String, u32> {
    let none = nic.driver.known().is_some_and(|d| d == "igb") && nic.vectors.iter().any(|v| v.role.is_pair());
    params.iter().filter(|(k, _)| !none || *k != "tx-usecs").map(|(k, v)| (k.clone(), *v)).collect::<BTreeMap<_, _>>()
}

/// Whether one interrupt serves both directions when the device has `queues` of at most `max` queues. This is known only
/// for igb (drivers/net/ethernet/intel/igb/igb_main.c, `igb_set_flag_queue_pairs`: it pairs when more than half of the
/// queues are used). igb devices with fewer than eight queues differ, some never pair. Lab: 4 of 8 queues are not paired,
/// 8 of 8 are.
pub fn pairs_with(driver: Option<&str>, queues: u32, max: u32) -> Option<bool> {
    (driver == Some("igb") && max >= 8).then_some(queues > max / 2)
}

/// How a driver rounds microseconds that it cannot store. A value rounded this way still matches the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounds {
    Up(u32),
    Down(u32),
    /// The driver stores whole interrupts per second.
    PerSecond,
}

/// Contains only rounding that the drivers' sources show (`ITR_REG_ALIGN` of the Intel drivers, `hns3_gl_round_down`,
/// `e1000_get_coalesce`); any other value does not match the request. mqnic is the driver of the lab.
const ROUNDING: [(&str, Rounds); 8] = [
    ("i40e", Rounds::Up(2)),
    ("iavf", Rounds::Up(2)),
    ("ice", Rounds::Down(2)),
    ("idpf", Rounds::Down(2)),
    ("hns3", Rounds::Down(2)),
    ("e1000", Rounds::PerSecond),
    ("e1000e", Rounds::PerSecond),
    ("mqnic", Rounds::Down(8)),
];

/// The value that the driver is known to store for `want`.
pub fn rounded(driver: Option<&str>, name: &str, want: u32) -> Option<u32> {
    if !matches!(name, "rx-usecs" | "tx-usecs") {
        return None;
    }
    let (_, how) = ROUNDING.iter().find(|(d, _)| Some(*d) == driver)?;
    match how {
        Rounds::Up(n) => want.checked_next_multiple_of(*n),
        Rounds::Down(n) => Some(want / n * n),
        Rounds::PerSecond => 1_000_000u32.checked_div(want).and_then(|rate| 1_000_000u32.checked_div(rate)),
    }
}

/// Like [`rounded`], but without the lab's driver, which rounds only when it is configured to.
pub fn always_rounded(driver: Option<&str>, name: &str, want: u32) -> Option<u32> {
    rounded(driver, name, want).filter(|_| driver != Some("mqnic"))
}

/// Drivers that choose the interval themselves for small values, and accept no fixed interval below a minimum
/// (`igb_set_coalesce`, `igc_ethtool_set_coalesce`, `e1000_set_coalesce` of e1000 and e1000e): driver, mode values,
/// initial mode, smallest fixed interval.
const OWN_MODES: [(&str, &[u32], u32, u32); 4] =
    [("e1000", &[1, 3, 4], 3, 10), ("e1000e", &[1, 3, 4], 3, 10), ("igb", &[1, 3], 3, 10), ("igc", &[1, 3], 3, 10)];

/// Largest interval of these drivers (`IGB_MAX_ITR_USECS` and the like).
const GREATEST: u32 = 10_000;

/// The fixed interval nearest to `usecs` that the driver is known to accept.
pub fn nearest(driver: Option<&str>, usecs: u32) -> u32 {
    match OWN_MODES.iter().find(|m| Some(m.0) == driver) {
        Some((.., least)) if usecs > 0 => usecs.clamp(*least, GREATEST),
        _ => usecs,
    }
}

/// The values that the driver accepts, if it is known to refuse `usecs`.
pub fn refuses(driver: Option<&str>, usecs: u32) -> Option<String> {
    let (_, modes, _, least) = OWN_MODES.iter().find(|m| Some(m.0) == driver)?;
    if usecs == 0 || modes.contains(&usecs) || (*least..=GREATEST).contains(&usecs) {
        return None;
    }
    let own: Vec<String> = modes.iter().map(u32::to_string).collect();
    Some(format!("0, {} to {GREATEST}, and {} for its own modes", least, own.join(" ")))
}

/// The value of `usecs` that means adaptive moderation for a driver without a switch for it: the current value if it is
/// such a mode, else the driver's initial mode.
pub fn own_mode(driver: Option<&str>, now: u32) -> Option<u32> {
    let (_, modes, first, _) = OWN_MODES.iter().find(|m| Some(m.0) == driver)?;
    Some(if modes.contains(&now) { now } else { *first })
}

/// While adaptive moderation of a direction is on, the driver changes these parameters of that direction itself.
pub const MOVED_BY_ADAPTIVE: [&str; 4] = ["rx-usecs", "rx-max-frames", "tx-usecs", "tx-max-frames"];

fn adaptive_moves(name: &str, want: &BTreeMap<String, u32>, got: &BTreeMap<String, u32>) -> bool {
    if !MOVED_BY_ADAPTIVE.contains(&name) {
        return false;
    }
    let flag = if name.starts_with("rx-") { "use-adaptive-rx" } else { "use-adaptive-tx" };
    let on = |m: &BTreeMap<String, u32>| m.get(flag).is_some_and(|v| *v != 0);
    on(want) && on(got)
}

/// Ignores parameters that were not requested. A requested parameter that the driver no longer reports differs.
pub fn compare(driver: Option<&str>, want: &BTreeMap<String, u32>, got: &BTreeMap<String, u32>) -> Match {
    let one = |(k, w): (&String, &u32)| match got.get(k) {
        Some(g) if g == w => Match::Same,
        Some(g) if rounded(driver, k, *w) == Some(*g) || adaptive_moves(k, want, got) => Match::Adjusted,
        _ => Match::Differs,
    };
    want.iter().map(one).max().unwrap_or(Match::Same)
}

fn put(driver: Option<&str>, params: &BTreeMap<String, u32>, into: &mut Coalesce) {
    let kept = params.iter().map(|(k, v)| (k.clone(), always_rounded(driver, k, *v).unwrap_or(*v)));
    into.0.extend(kept);
}

/// A write to the device also sets all its queues.
pub(crate) fn project(nic: &mut Nic, params: &BTreeMap<String, u32>) -> Result<(), NotProjected> {
    let driver = nic.driver.known().cloned();
    let device = known(&mut nic.coalesce)?;
    put(driver.as_deref(), params, device);
    if let Fact::Known(all) = &mut nic.queue_coalesce {
        all.values_mut().for_each(|c| *c = device.clone());
    }
    Ok(())
}

pub(crate) fn project_queue(nic: &mut Nic, queue: u32, params: &BTreeMap<String, u32>) -> Result<(), NotProjected> {
    let driver = nic.driver.known().cloned();
    let all = known(&mut nic.queue_coalesce)?;
    put(driver.as_deref(), params, all.entry(queue).or_insert_with(|| Coalesce(BTreeMap::new())));
    Ok(())
}

/// Text of the parameters for people.
pub fn text(params: &BTreeMap<String, u32>) -> String {
    let s: Vec<String> = params.iter().map(|(k, v)| format!("{k} {v}")).collect();
    s.join(" ")
}

/// The arguments use ethtool's names instead of the netlink names (`use-adaptive-rx 1` is `adaptive-rx on`,
/// `rx-max-frames` is `rx-frames`, the steps of a profile are one list).
pub fn command(dev: &str, params: &BTreeMap<String, u32>) -> String {
    format!("ethtool -C {dev} {}", words(params))
}

/// ethtool's name and value for one parameter that does not belong to a profile.
pub fn word(name: &str, value: u32) -> (String, String) {
    let on = if value == 0 { "off" } else { "on" };
    match (name, name.strip_prefix("use-")) {
        (_, Some(flag)) => (flag.into(), on.into()),
        ("rate-sample-interval", _) => ("sample-interval".into(), value.to_string()),
        (aggr, _) if aggr.starts_with("tx-aggr-") => (name.into(), value.to_string()),
        _ => (name.replace("-max-frames", "-frames"), value.to_string()),
    }
}

fn words(params: &BTreeMap<String, u32>) -> String {
    let mut out: Vec<String> = Vec::new();
    for (k, v) in params.iter().filter(|(k, _)| !k.contains('.')) {
        let (name, value) = word(k, *v);
        out.push(format!("{name} {value}"));
    }
    for profile in ["rx-profile", "tx-profile"] {
        let steps: Vec<String> = (0..)
            .map(|i| ["usec", "pkts", "comps"].map(|f| params.get(&format!("{profile}.{i}.{f}"))))
            .take_while(|step| step.iter().any(Option::is_some))
            .map(|step| step.map(|n| n.map_or_else(|| "n".into(), u32::to_string)).join(","))
            .collect();
        if !steps.is_empty() {
            out.push(format!("{profile} {}", steps.join("_")));
        }
    }
    out.join(" ")
}

/// Whether the parameter exists only for the device and not for single queues: the kernel's request for queues
/// (`ETHTOOL_PERQUEUE`, with `struct ethtool_coalesce`) has no field for it.
pub fn of_device_only(name: &str) -> bool {
    name.contains("-cqe-") || name.contains("-profile.") || name.starts_with("tx-aggr-")
}

/// Moderation of one queue. Absent if the queue has none of its own.
pub fn live_queue(nic: &Nic, queue: u32) -> Fact<Setting> {
    let dev = nic.dev.name.clone();
    nic.queue_coalesce.as_ref().and_then(|all| match all.get(&queue) {
        Some(c) => Fact::Known(Setting::QueueCoalesce { dev, queue, params: c.0.clone() }),
        None => Fact::Absent,
    })
}

/// Addresses of the moderation of single queues.
pub fn queue_addresses(nic: &Nic) -> Vec<crate::Address> {
    let queues = nic.queue_coalesce.known().into_iter().flat_map(|all| all.keys());
    queues.map(|q| crate::Address::QueueCoalesce { dev: nic.dev.name.clone(), queue: *q }).collect()
}

/// The `ethtool --per-queue` command for one queue.
pub fn queue_command(dev: &str, queue: u32, params: &BTreeMap<String, u32>) -> String {
    format!("ethtool --per-queue {dev} queue_mask {} --coalesce {}", queue_mask(queue), words(params))
}

/// `0x200000000`
pub fn queue_mask(queue: u32) -> String {
    let mask = crate::mask::mask(&std::iter::once(ringwise_model::CpuId(queue)).collect());
    format!("0x{}", mask.replace(',', ""))
}

/// Whether the device differs from `want` only because it reports the values of its first queue, and `target` corrects
/// that queue. Then the device need not be written, and must not be written if the driver accepts the values only for
/// some queues.
pub(crate) fn shows_first_queue(nic: &Nic, want: &BTreeMap<String, u32>, target: &crate::SettingMap) -> bool {
    let (Some(device), Some(queues)) = (nic.coalesce.known(), nic.queue_coalesce.known()) else { return false };
    let Some((first, shown)) = queues.first_key_value() else { return false };
    let address = crate::Address::QueueCoalesce { dev: nic.dev.name.clone(), queue: *first };
    let Some(Setting::QueueCoalesce { params: then, .. }) = target.get(&address) else { return false };
    let mut differ = want.iter().filter(|(k, v)| device.0.get(*k) != Some(*v));
    differ.all(|(k, v)| shown.0.get(k) == device.0.get(k) && then.get(k) == Some(v))
}

/// `params` without the parameters in `names`; `None` if nothing is left.
pub(crate) fn without<'a>(
    params: &BTreeMap<String, u32>,
    names: impl IntoIterator<Item = &'a String>,
) -> Option<BTreeMap<String, u32>> {
    let mut left = params.clone();
    names.into_iter().for_each(|n| _ = left.remove(n));
    (!left.is_empty()).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(list: &[(&str, u32)]) -> BTreeMap<String, u32> {
        list.iter().map(|(k, v)| (k.to_string(), *v)).collect()
    }

    #[test]
    fn only_known_rounding_counts_as_adjusted() {
        let kept = |driver, want, got| compare(Some(driver), &map(&[("rx-usecs", want)]), &map(&[("rx-usecs", got)]));
        assert_eq!(kept("i40e", 5, 6), Match::Adjusted);
        assert_eq!(kept("i40e", 5, 4), Match::Differs);
        assert_eq!(kept("ice", 5, 4), Match::Adjusted);
        assert_eq!(kept("mqnic", 62, 56), Match::Adjusted);
        assert_eq!(kept("mqnic", 62, 48), Match::Differs);
        // 7000 us are 142 interrupts per second, which are 7042 us.
        assert_eq!(kept("e1000e", 7000, 7042), Match::Adjusted);
        assert_eq!(kept("e1000e", 0, 3), Match::Differs);
        assert_eq!(kept("igb", 5, 6), Match::Differs);
        assert_eq!(compare(None, &map(&[("rx-max-frames", 9)]), &map(&[("rx-max-frames", 8)])), Match::Differs);
        assert_eq!(compare(Some("ice"), &map(&[("tx-usecs", 5)]), &map(&[])), Match::Differs);
    }

    #[test]
    fn values_that_a_driver_accepts_instead() {
        assert_eq!((nearest(Some("igb"), 5), nearest(Some("igb"), 62), nearest(Some("igb"), 0)), (10, 62, 0));
        assert_eq!((nearest(Some("ice"), 5), nearest(None, 5)), (5, 5));
        assert_eq!((nearest(Some("igb"), 20_000), nearest(Some("ice"), 20_000)), (10_000, 20_000));
        let refused = |driver, all: &[u32]| {
            all.iter().copied().filter(|n| refuses(Some(driver), *n).is_some()).collect::<Vec<u32>>()
        };
        assert_eq!(refused("igb", &[0, 1, 2, 3, 4, 9, 10, 62, 10_000, 10_001]), [2, 4, 9, 10_001]);
        assert_eq!(refused("e1000", &[2, 3, 4, 5]), [2, 5]);
        assert!(refused("ice", &[2, 5, 10_001]).is_empty());
        assert_eq!(
            (own_mode(Some("igb"), 1), own_mode(Some("igb"), 62), own_mode(Some("ice"), 50)),
            (Some(1), Some(3), None)
        );
    }

    #[test]
    fn adaptive_moderation_moves_its_own_values() {
        let want = map(&[("rx-usecs", 50), ("use-adaptive-rx", 1), ("tx-usecs", 9)]);
        let got = |rx, on, tx| map(&[("rx-usecs", rx), ("use-adaptive-rx", on), ("tx-usecs", tx)]);
        assert_eq!(compare(None, &want, &got(8, 1, 9)), Match::Adjusted);
        assert_eq!(compare(None, &want, &got(8, 0, 9)), Match::Differs);
        assert_eq!(compare(None, &want, &got(50, 1, 8)), Match::Differs);
    }

    #[test]
    fn words_of_ethtool() {
        let p = map(&[
            ("rx-usecs", 5),
            ("rx-max-frames", 8),
            ("use-adaptive-rx", 0),
            ("use-cqe-mode-tx", 1),
            ("tx-aggr-max-frames", 4),
            ("rate-sample-interval", 1),
            ("rx-profile.0.usec", 1),
            ("rx-profile.0.pkts", 256),
            ("rx-profile.1.usec", 8),
        ]);
        assert_eq!(
            command("eth0", &p),
            "ethtool -C eth0 sample-interval 1 rx-frames 8 rx-usecs 5 tx-aggr-max-frames 4 adaptive-rx off \
             cqe-mode-tx on rx-profile 1,256,n_8,n,n"
        );
        assert_eq!(
            queue_command("eth0", 33, &map(&[("rx-usecs", 5)])),
            "ethtool --per-queue eth0 queue_mask 0x200000000 --coalesce rx-usecs 5"
        );
    }
}
