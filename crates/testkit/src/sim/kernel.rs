//! What the kernel accepts, rounds and refuses, and its messages.

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_nl::ids::channels;
use ringwise_kfmt::{cpulist, cpumask};
use ringwise_model::errno::{EACCES, EINVAL, EIO, ENODEV, ENOENT, ENOSPC, EOPNOTSUPP, EOVERFLOW, EPERM, ERANGE, EROFS};
use ringwise_model::{CpuSet, Fact, Nic, RingKind, RingValues, User};
use ringwise_sys::{Error, Result};

use super::driver_kind::SimulatedDriver;
use super::{State, driver, files, rss};

const RX_COUNT: u16 = channels::RX_COUNT;
const TX_COUNT: u16 = channels::TX_COUNT;
const OTHER_COUNT: u16 = channels::OTHER_COUNT;
pub(super) const COMBINED_COUNT: u16 = channels::COMBINED_COUNT;

/// An errno; the caller names the file.
fn no(errno: i32) -> Error {
    Error::errno("", errno)
}

fn words(errno: i32, words: &str) -> Error {
    Error { words: Some(words.to_string()), ..no(errno) }
}

impl State {
    pub(crate) fn possible(&self) -> CpuSet {
        self.topology.possible.known().cloned().unwrap_or_else(|| self.topology.online.clone())
    }

    /// Major and minor number.
    pub(crate) fn version(&self) -> (u32, u32) {
        version_of(&self.host.kernel.known().cloned().unwrap_or_default())
    }
}

/// Major and minor number of `6.12.48`.
pub(super) fn version_of(kernel: &str) -> (u32, u32) {
    let mut n = kernel.split(|c: char| !c.is_ascii_digit()).map(|p| p.parse().unwrap_or(0));
    (n.next().unwrap_or(0), n.next().unwrap_or(0))
}

pub(super) fn write(s: &mut State, path: &str, text: &str) -> Result<()> {
    let Some(real) = files::real_path(s, path) else {
        return Err(no(ENOENT));
    };
    if s.host.read_only.known() == Some(&true) {
        return Err(no(EROFS));
    }
    if let Some(rest) = real.strip_prefix("/proc/irq/") {
        let (irq, file) = rest.split_once('/').unwrap_or((rest, ""));
        let irq = irq.parse().map_err(|_| no(EINVAL))?;
        return match file {
            "smp_affinity_list" => affinity(s, irq, text, true),
            "smp_affinity" => affinity(s, irq, text, false),
            _ => Err(no(EACCES)),
        };
    }
    if let Some(done) = super::features::write(s, &real, text) {
        return done;
    }
    if real == "/proc/sys/net/core/rps_sock_flow_entries" {
        let n: u32 = text.trim().parse().map_err(|_| no(EINVAL))?;
        // lab: "rps_sock_flow_entries too"
        s.host.rps_sock_flow_entries = Fact::Known(power_of_two(n)?);
        return Ok(());
    }
    if let Some((before, file)) = real.rsplit_once('/')
        && super::napi::is_file(file)
    {
        let i = s.index(before.rsplit('/').next().unwrap_or("")).ok_or_else(|| no(ENODEV))?;
        super::napi::write(s, i, file, text)?;
        s.stale(i);
        return Ok(());
    }
    let Some((before, rest)) = real.split_once("/queues/") else {
        return Err(no(EACCES));
    };
    let dev = before.rsplit('/').next().unwrap_or("");
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let (queue, file) = rest.split_once('/').unwrap_or((rest, ""));
    queue_file(s, i, queue, file, text)?;
    s.stale(i);
    Ok(())
}

/// Rounded up; the kernel accepts at most 2^29 entries.
fn power_of_two(n: u32) -> Result<u32> {
    match n {
        0 => Ok(0),
        n if n > 1 << 29 => Err(no(EINVAL)),
        n => Ok(n.next_power_of_two()),
    }
}

/// net/core/net-sysfs.c
fn queue_file(s: &mut State, i: usize, queue: &str, file: &str, text: &str) -> Result<()> {
    let possible = s.possible();
    let isolated = s.topology.isolated.known().cloned().unwrap_or_default();
    let online = s.topology.online.clone();
    let nic = &mut s.nics[i];
    let number = |p: &str| queue.strip_prefix(p).and_then(|n| n.parse::<u32>().ok());
    match (number("rx-"), number("tx-"), file) {
        (Some(q), _, "rps_cpus") => {
            let mut set = mask(text, &possible)?;
            if !set.is_empty() {
                // The kernel removes isolated CPUs silently; an empty result is EINVAL.
                // net/core/net-sysfs.c, rps_cpumask_housekeeping.
                // lab: "rps_cpus: isolated CPUs among others are taken out", "rps_cpus: isolated CPUs alone"
                set = set.difference(&isolated);
                if set.is_empty() {
                    return Err(no(EINVAL));
                }
            }
            let q = nic.rx_queues.iter_mut().find(|x| x.id == q).ok_or_else(|| no(ENOENT))?;
            // The kernel removes offline CPUs silently, even if no CPU is left: RPS is off then.
            // net/core/net-sysfs.c, netdev_rx_queue_set_rps_mask. lab: "rps_cpus drops an offline CPU"
            q.rps_cpus = Fact::Known(set.intersection(&online));
        }
        (Some(q), _, "rps_flow_cnt") => {
            let n: u32 = text.trim().parse().map_err(|_| no(EINVAL))?;
            let q = nic.rx_queues.iter_mut().find(|x| x.id == q).ok_or_else(|| no(ENOENT))?;
            // lab: "rps_flow_cnt is rounded up to a power of two"
            q.rps_flow_cnt = Fact::Known(power_of_two(n)?);
        }
        (_, Some(q), "xps_cpus") => {
            // lab: "e1000e: one queue has no xps_cpus to read"
            if nic.tx_queues.len() < 2 {
                return Err(no(ENOENT));
            }
            let set = mask(text, &possible)?;
            let q = nic.tx_queues.iter_mut().find(|x| x.id == q).ok_or_else(|| no(ENOENT))?;
            // As for RPS. net/core/dev.c, __netif_set_xps_queue. lab: "xps_cpus drops an offline CPU"
            q.xps_cpus = Fact::Known(set.intersection(&online));
        }
        (_, Some(q), "xps_rxqs") => {
            let rx: CpuSet = nic.rx_queues.iter().map(|q| ringwise_model::CpuId(q.id)).collect();
            let set = mask(text, &rx)?;
            let q = nic.tx_queues.iter_mut().find(|x| x.id == q).ok_or_else(|| no(ENOENT))?;
            q.xps_rxqs = Fact::Known(set.iter().map(|c| c.0).collect());
        }
        _ => return Err(no(EACCES)),
    }
    Ok(())
}

/// lab: "rps_cpus: beyond", "rps_cpus: garbage", "affinity: beyond, as a mask"
fn mask(text: &str, possible: &CpuSet) -> Result<CpuSet> {
    let set = cpumask::parse(text).map_err(|_| no(EINVAL))?;
    let width = possible.last().map_or(0, |c| c.0 + 1);
    if set.last().is_some_and(|c| c.0 >= width) { Err(no(EOVERFLOW)) } else { Ok(set) }
}

/// kernel/irq/proc.c, `write_irq_affinity`
fn affinity(s: &mut State, irq: u32, text: &str, list: bool) -> Result<()> {
    let possible = s.possible();
    let online = s.topology.online.clone();
    let version = s.version();
    let full = s.full_cpus.clone();
    let i = s.nics.iter().position(|n| n.vectors.iter().any(|v| v.irq.0 == irq)).ok_or_else(|| no(ENOENT))?;
    if s.extra[i].managed.contains(&irq) {
        // Before the text is parsed. lab: "managed vectors refuse" (EIO on 6.1, EPERM on 6.12)
        return Err(no(if version >= (6, 12) { EPERM } else { EIO }));
    }
    let set = if list {
        let set = cpulist::parse(text).map_err(|_| no(EINVAL))?;
        let width = possible.last().map_or(0, |c| c.0 + 1);
        // lab: "affinity: a CPU beyond the possible ones, as a list"
        if set.last().is_some_and(|c| c.0 >= width) {
            return Err(no(ERANGE));
        }
        set
    } else {
        mask(text, &possible)?
    };
    // lab: "affinity: no CPU", "affinity: an offline CPU alone"
    if !set.intersects(&online) {
        return Err(no(EINVAL));
    }
    let v = s.nics[i].vectors.iter_mut().find(|v| v.irq.0 == irq).ok_or_else(|| no(ENOENT))?;
    // arch/x86/kernel/apic/vector.c: a CPU of the set must have a free vector; the current CPU counts.
    // Not shown in the lab: no host there has the 200 interrupts that fill a CPU.
    let at = v.effective.known().cloned().unwrap_or_default();
    if !full.is_empty() && !at.intersects(&set) && set.intersection(&online).is_subset(&full) {
        return Err(no(ENOSPC));
    }
    // The effective CPU stays until the next interrupt. lab: "but takes effect only at the next interrupt"
    let before = std::mem::replace(&mut v.asked, Fact::Known(set));
    if let Some((_, old)) = s.old_masks.get_mut(&irq) {
        *old = before.known().cloned();
    }
    s.stale(i);
    Ok(())
}

/// What a read of `path` shows while the kernel is on its way from one mask to the next.
pub(super) fn old_mask(s: &mut State, path: &str) -> Option<Vec<u8>> {
    let irq = path.strip_prefix("/proc/irq/")?.strip_suffix("/smp_affinity_list")?.parse::<u32>().ok()?;
    let (left, old) = s.old_masks.get_mut(&irq)?;
    let old = old.as_ref().filter(|_| *left > 0)?;
    *left -= 1;
    Some(format!("{old}\n").into_bytes())
}

/// lab: "vmxnet3: -L is refused"
pub(super) fn sets_channels(driver: SimulatedDriver) -> bool {
    !matches!(driver, SimulatedDriver::Vmxnet3 | SimulatedDriver::E1000e)
}

/// net/ethtool/channels.c, `ethnl_set_channels`; `counts` by attribute number.
pub(super) fn set_channels(s: &mut State, dev: &str, counts: &BTreeMap<u16, u32>) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let driver = s.extra[i].driver;
    let nic = &s.nics[i];
    let Fact::Known(channels) = nic.channels else {
        return Err(no(EOPNOTSUPP));
    };
    if !sets_channels(driver) {
        return Err(no(EOPNOTSUPP));
    }
    let kinds = [
        (RX_COUNT, channels.rx),
        (TX_COUNT, channels.tx),
        (OTHER_COUNT, channels.other),
        (COMBINED_COUNT, channels.combined),
    ];
    let mut want = [0u32; 4];
    for (k, (attr, count)) in kinds.iter().enumerate() {
        want[k] = counts.get(attr).copied().unwrap_or(count.map_or(0, |c| c.now));
        // lab: "channels: above the maximum"
        if want[k] > count.map_or(0, |c| c.max) {
            return Err(words(EINVAL, "requested channel count exceeds maximum"));
        }
    }
    let [rx, tx, other, combined] = want;
    if kinds.iter().zip(want).all(|((_, c), w)| c.map_or(0, |c| c.now) == w) {
        return Ok(());
    }
    // lab: "channels: none"
    if combined + rx.min(tx) == 0 {
        return Err(words(EINVAL, "requested channel counts would result in no RX or TX channel being configured"));
    }
    // lab: "igb: -L to fewer queues than the table uses is refused"
    // lab: "RSS contexts: -L to fewer queues than one uses is refused"
    let highest = nic.rss.known().and_then(|r| rss::highest(r, s.extra[i].rss_by_user));
    if let Some(h) = highest.filter(|h| *h >= combined + rx) {
        let text = format!("requested channel counts are too low for existing indirection table ({h})");
        return Err(words(EINVAL, &text));
    }
    if super::rules::highest(&s.nics[i]).is_some_and(|h| h >= combined + rx) {
        // lab: "rules: and the kernel's words". Before that it is the driver's business: lab/mqnic/channels.c refuses.
        if s.version() >= (6, 6) {
            return Err(words(EINVAL, "requested channel counts are too low for existing ntuple filter settings"));
        }
        if driver == SimulatedDriver::Mqnic {
            return Err(no(EINVAL));
        }
    }
    held(&s.nics[i], (combined + rx, combined + tx), s.version())?;
    driver::channels_changed(s, i, combined)?;
    if let Fact::Known(c) = &mut s.nics[i].channels {
        for (count, n) in [(&mut c.rx, rx), (&mut c.tx, tx), (&mut c.other, other), (&mut c.combined, combined)] {
            if let Some(count) = count {
                count.now = n;
            }
        }
    }
    s.stale(i);
    Ok(())
}

/// Queues that a program holds are not removed; `left`: receive and transmit queues that stay. Memory:
/// net/ethtool/common.c, `ethtool_check_max_channel`. It compares with `<=`, although `dev_get_min_mp_channel_count`
/// (net/core/dev.c) is the number of the queue plus one, so one queue more has to stay. The others, by queue: 7.1
/// net/ethtool/channels.c, `ethnl_set_channels`, with `netdev_queue_busy` of net/core/netdev_queues.c; before only AF_XDP
/// sockets. From source: the lab's kernels have no driver that binds memory to a queue.
fn held(nic: &Nic, left: (u32, u32), version: (u32, u32)) -> Result<()> {
    let since_7_1 = version >= (7, 1);
    let memory = nic.queue_users().filter(|u| u.hides_data()).filter_map(User::queue).max();
    if let Some(count) = memory.map(|q| q + 1).filter(|count| left.0 <= *count) {
        let text = format!("requested channel counts are too low for existing memory provider setting ({count})");
        return Err(words(EINVAL, &text));
    }
    for user in nic.queue_users() {
        let Some(queue) = user.queue() else { continue };
        let text = match user {
            User::AfXdp { .. } if queue >= left.0.min(left.1) => match since_7_1 {
                true => "Device queue in use by AF_XDP",
                false => "requested channel counts are too low for existing zerocopy AF_XDP sockets",
            },
            User::Lease { .. } if since_7_1 && queue >= left.0 => "Device queue in use due to queue leasing",
            _ => continue,
        };
        return Err(words(EINVAL, text));
    }
    Ok(())
}

/// net/ethtool/rings.c, `ethnl_set_rings`
pub(super) fn set_rings(s: &mut State, dev: &str, want: &RingValues) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let Fact::Known(rings) = s.nics[i].rings else {
        return Err(no(EOPNOTSUPP));
    };
    // lab: "rings: above the maximum"
    for (part, n) in want.iter() {
        match (part.kind, part.found(&rings)) {
            (RingKind::Size, found) if n > found.map_or(0, |r| r.max) => {
                return Err(words(EINVAL, "requested ring size exceeds maximum"));
            }
            (RingKind::Size, _) => {}
            (RingKind::Mode, _) => {}
            (_, None) => return Err(words(EOPNOTSUPP, &format!("setting {} is not supported", part.word))),
            (_, Some(found)) if found.max > 0 && n > found.max => {
                let text = match part.key {
                    "tx_push_buf_len" => format!("Requested TX push buffer exceeds the maximum of {}", found.max),
                    _ => "requested ring size exceeds maximum".into(),
                };
                return Err(words(EINVAL, &text));
            }
            _ => {}
        }
    }
    driver::rings_changed(s, i, want)?;
    s.stale(i);
    Ok(())
}
