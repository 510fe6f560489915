//! `SIOCETHTOOL` with the caller's struct. The size of the struct is checked against what the kernel accesses for this command,
//! so that a short payload cannot make the kernel write beyond the buffer. Layouts: `linux/ethtool.h`, `net/ethtool/ioctl.c`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::host::{Error, IoctlCmd, Request, Result};

/// Not in libc for glibc targets. `linux/sockios.h`.
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const RXFH_HEADER: usize = 24;
/// `ethtool_per_queue_op` without data: command, sub-command and 4,096 bits; `ethtool_coalesce`.
const PERQUEUE_HEADER: usize = 520;
const COALESCE: usize = 92;
/// `sizeof(struct ethtool_rxnfc)`, and the offset of its locations.
const RXNFC: usize = 192;
const RULE_LOCATIONS: usize = 188;
const GSTRINGS: u32 = 0x1b;
const GSTATS: u32 = 0x1d;
const GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
/// More counters than any driver has; a device with many queues has some thousands.
const MOST_STATS: usize = 32_768;
/// `ETH_RXFH_INDIR_NO_CHANGE`: in SRSSH no table follows.
const INDIR_NO_CHANGE: u32 = 0xffff_ffff;

/// Bytes that the kernel may read or write for this command and payload.
fn touched(cmd: IoctlCmd, payload: &[u8]) -> usize {
    let field = |at: usize| payload.get(at..at + 4).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    match cmd {
        IoctlCmd::DrvinfoGet => 196,
        IoctlCmd::RxfhFieldsGet
        | IoctlCmd::RxfhFieldsSet
        | IoctlCmd::RuleCount
        | IoctlCmd::RuleGet
        | IoctlCmd::RuleDelete
        | IoctlCmd::RuleInsert => RXNFC,
        IoctlCmd::RuleList => RXNFC.max(RULE_LOCATIONS + field(184) as usize * 4),
        IoctlCmd::PerQueue => {
            // One ethtool_coalesce for each bit of the mask.
            let queues: u32 = payload.iter().skip(8).take(PERQUEUE_HEADER - 8).map(|b| b.count_ones()).sum();
            PERQUEUE_HEADER + queues as usize * COALESCE
        }
        IoctlCmd::RssGet | IoctlCmd::RssSet => {
            let entries = if field(8) == INDIR_NO_CHANGE { 0 } else { field(8) as usize };
            RXFH_HEADER + entries * 4 + field(12) as usize
        }
    }
}

const NO_NAME: &str = "not an interface name: empty, or longer than 15 bytes";

fn is_name(dev: &str) -> bool {
    !dev.is_empty() && dev.len() < libc::IFNAMSIZ && !dev.contains('\0')
}

/// Returns the struct after the call. The first field (`cmd`) is set here.
pub(super) fn ethtool(request: &Request, cmd: IoctlCmd, dev: &str, payload: &[u8]) -> Result<Vec<u8>> {
    let what = request.to_string();
    if !is_name(dev) {
        return Err(Error::other(what, NO_NAME));
    }
    let need = touched(cmd, payload);
    if payload.len() < need {
        let words = format!("the request has {} bytes, but the kernel uses {need}", payload.len());
        return Err(Error::other(what, words));
    }
    // u64 cells, because the structs hold u64 fields and a Vec<u8> guarantees no alignment.
    let mut cells = vec![0u64; payload.len().div_ceil(8)];
    // SAFETY: `cells` holds at least payload.len() initialised bytes, any of which may be any value.
    let bytes = unsafe { std::slice::from_raw_parts_mut(cells.as_mut_ptr().cast::<u8>(), payload.len()) };
    bytes.copy_from_slice(payload);
    bytes[..4].copy_from_slice(&(cmd as u32).to_ne_bytes());
    call(&what, dev, bytes)?;
    Ok(bytes.to_vec())
}

/// Makes the call. The kernel reads and writes `bytes`: it must be at least as long as what the kernel accesses for the command
/// in its first word.
fn call(what: &str, dev: &str, bytes: &mut [u8]) -> Result<()> {
    let fail = || Error::errno(what, io::Error::last_os_error().raw_os_error().unwrap_or(0));
    // SAFETY: no pointers; the result is checked before use.
    let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(fail());
    }
    // SAFETY: `raw` was just opened and nothing else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: all-zero is a valid ifreq (integers, and a union of integers and pointers).
    let mut ifreq: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in ifreq.ifr_name.iter_mut().zip(dev.bytes()) {
        *to = from as libc::c_char;
    }
    ifreq.ifr_ifru.ifru_data = bytes.as_mut_ptr().cast();
    // SAFETY: `ifreq` names a buffer that lives until after the call and is no shorter than what the kernel accesses for this
    // command (`touched`, `stats`).
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL as _, &raw mut ifreq) };
    if rc < 0 { Err(fail()) } else { Ok(()) }
}

/// Names (32 bytes each) or values (8 bytes each) of the driver's own counters.
///
/// Before 6.18 or so the kernel writes as many as exist at that moment, whatever length is given, and the channels may change
/// after the count was read. So the buffer has space for more counters than any driver has.
pub(super) fn stats(request: &Request, dev: &str, names: bool) -> Result<Vec<u8>> {
    let what = request.to_string();
    if !is_name(dev) {
        return Err(Error::other(what, NO_NAME));
    }
    let mut info = [0u64; 4];
    // ethtool_sset_info: command, reserved, mask of 64 bits, a word for each set of the mask.
    (info[0], info[1]) = (u64::from(GSSET_INFO), 1 << ETH_SS_STATS);
    call(&what, dev, cells_as_bytes(&mut info))?;
    let count = cells_as_bytes(&mut info).get(16..20).map_or(0, |b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
    if count == 0 {
        return Err(Error::errno(what, libc::EOPNOTSUPP));
    }
    let (head, each) = if names { (12, 32) } else { (8, 8) };
    let room = (count as usize * 4).max(MOST_STATS);
    let mut cells = vec![0u64; (head + room * each).div_ceil(8)];
    let bytes = cells_as_bytes(&mut cells);
    let words = if names { [GSTRINGS, ETH_SS_STATS, count] } else { [GSTATS, count, 0] };
    for (at, word) in words.iter().enumerate().take(head / 4) {
        bytes[at * 4..at * 4 + 4].copy_from_slice(&word.to_ne_bytes());
    }
    call(&what, dev, bytes)?;
    let at = head - 4;
    let got = u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as usize;
    if got != count as usize {
        return Err(Error::other(what, "the list of counters changed while it was read"));
    }
    Ok(bytes[head..head + got * each].to_vec())
}

fn cells_as_bytes(cells: &mut [u64]) -> &mut [u8] {
    // SAFETY: the same memory, all of it initialised; u8 has no alignment and any value is one.
    unsafe { std::slice::from_raw_parts_mut(cells.as_mut_ptr().cast::<u8>(), cells.len() * 8) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ifindex::ifindex;

    fn call(cmd: IoctlCmd, dev: &str, payload: Vec<u8>) -> Result<Vec<u8>> {
        let request = Request::Ioctl { cmd, dev: dev.into(), payload: payload.clone() };
        ethtool(&request, cmd, dev, &payload)
    }

    #[test]
    fn a_real_refusal_keeps_its_errno() {
        let gone = call(IoctlCmd::DrvinfoGet, "nonesuch0", vec![0; 196]).unwrap_err();
        assert_eq!(gone.errno, Some(libc::ENODEV), "{gone}");
        let lo = call(IoctlCmd::RssGet, "lo", vec![0; 24]).unwrap_err();
        assert_eq!(lo.errno, Some(libc::EOPNOTSUPP), "{lo}");
        let rules = call(IoctlCmd::RuleCount, "lo", vec![0; 192]).unwrap_err();
        assert_eq!(rules.errno, Some(libc::EOPNOTSUPP), "{rules}");
        let mut queue = vec![0; 520 + 92];
        queue[4..8].copy_from_slice(&0x0eu32.to_ne_bytes());
        queue[8] = 1;
        let queue = call(IoctlCmd::PerQueue, "lo", queue).unwrap_err();
        assert_eq!(queue.errno, Some(libc::EOPNOTSUPP), "{queue}");
        for request in [Request::StatNames { dev: "lo".into() }, Request::StatValues { dev: "lo".into() }] {
            let none = stats(&request, "lo", matches!(request, Request::StatNames { .. })).unwrap_err();
            assert_eq!(none.errno, Some(libc::EOPNOTSUPP), "{none}");
        }
        assert_eq!(ifindex("x", "nonesuch0").unwrap_err().errno, Some(libc::ENODEV));
        assert_eq!(ifindex("x", "lo").unwrap(), 1);
    }

    #[test]
    fn a_short_struct_never_reaches_the_kernel() {
        assert_eq!(call(IoctlCmd::DrvinfoGet, "lo", vec![0; 195]).unwrap_err().errno, None);
        let mut rss = vec![0; 24];
        rss[8..12].copy_from_slice(&128u32.to_ne_bytes());
        assert_eq!(call(IoctlCmd::RssGet, "lo", rss).unwrap_err().errno, None);
        let mut rules = vec![0; 192];
        rules[184..188].copy_from_slice(&2u32.to_ne_bytes());
        assert_eq!(call(IoctlCmd::RuleList, "lo", rules).unwrap_err().errno, None, "4 bytes short");
        let mut queues = vec![0; 520 + 2 * 92];
        (queues[8], queues[519]) = (3, 0x80);
        assert_eq!(call(IoctlCmd::PerQueue, "lo", queues).unwrap_err().errno, None, "one queue short");
        assert_eq!(call(IoctlCmd::DrvinfoGet, "a-name-that-is-too-long", vec![0; 196]).unwrap_err().errno, None);
    }
}
