//! RSS: what the kernel and the drivers accept and refuse, with the messages that only netlink returns.

use std::collections::BTreeMap;
use std::time::Duration;

use ringwise_kfmt::ethtool_ioctl::{self as ioctl, TableOrder, fields};
use ringwise_kfmt::{ethtool_nl as nl, nl as attrs};
use ringwise_model::errno::{EBUSY, EFAULT, EINVAL, ENODEV, ENOENT, EOPNOTSUPP};
use ringwise_model::{Fact, Nic, Rss, RssContext};
use ringwise_sys::{Error, IoctlCmd, Request, Result};

use super::State;
use super::driver;
use super::driver_kind::{Quirk, SimulatedDriver};
use super::refusal::{bad, fact, no};

/// RSS_SET and similar requests, and hash fields by netlink.
const BY_NETLINK: (u32, u32) = (6, 17);
/// RSS_GET.
const ONE: (u32, u32) = (6, 2);
/// RSS_GET as a dump.
const LIST: (u32, u32) = (6, 12);
const SYMMETRIC: (u32, u32) = (6, 8);

fn parts(s: &State, rss: &Rss) -> Result<nl::RssParts> {
    let key = |k: &String| attrs::unhex(k).map_err(bad);
    Ok(nl::RssParts {
        context: None,
        indir: rss.table.clone(),
        hkey: rss.key.known().map_or(Ok(Vec::new()), key)?,
        hfunc: rss.function.known().and_then(|f| nl::hfunc_mask(f)),
        input_xfrm: rss.symmetric.known().and_then(|x| nl::xfrm_mask(x)).filter(|x| *x > 0),
        fields: (s.version() >= BY_NETLINK && !rss.fields.is_empty()).then(|| rss.fields.clone()),
    })
}

fn context_parts(number: u32, c: &RssContext) -> Result<nl::RssParts> {
    let hkey = c.key.as_ref().map_or(Ok(Vec::new()), |k| attrs::unhex(k)).map_err(bad)?;
    Ok(nl::RssParts { context: Some(number), indir: c.table.clone(), hkey, ..Default::default() })
}

/// RSS_GET. lab: "RSS: no transform before 6.8" (no such message before 6.2)
pub(super) fn get(s: &State, nic: &Nic) -> Result<Vec<u8>> {
    if s.version() < ONE {
        return Err(no(EOPNOTSUPP));
    }
    nl::rss_reply(&parts(s, fact(&nic.rss)?)?).map_err(bad)
}

/// RSS_GET as a dump: the device's own, then the contexts. lab: "context 1: equal 2 start 4"
pub(super) fn list(s: &State, nic: &Nic) -> Result<Vec<Vec<u8>>> {
    if s.version() < LIST {
        return Err(no(EOPNOTSUPP));
    }
    let Fact::Known(rss) = &nic.rss else { return Ok(Vec::new()) };
    let contexts = rss.contexts.known().into_iter().flatten();
    let mut all = vec![parts(s, rss)?];
    all.extend(contexts.map(|(n, c)| context_parts(*n, c)).collect::<Result<Vec<_>>>()?);
    all.iter().map(|p| nl::rss_reply(p).map_err(bad)).collect()
}

/// GRSSH and GRXFH.
pub(super) fn get_by_ioctl(s: &State, nic: &Nic, cmd: IoctlCmd, payload: &[u8]) -> Result<Vec<u8>> {
    let rss = fact(&nic.rss)?;
    if cmd == IoctlCmd::RxfhFieldsGet {
        let flow = ioctl::grxfh_flow(payload).map_err(bad)?;
        let unknown = if rss.fields.is_empty() { EOPNOTSUPP } else { EINVAL };
        return ioctl::grxfh_reply(payload, rss.fields.get(flow).ok_or_else(|| no(unknown))?).map_err(bad);
    }
    let parts = match ioctl::srssh_context(payload).map_err(bad)? {
        0 => parts(s, rss)?,
        n => {
            let all = rss.contexts.known().ok_or_else(|| no(EOPNOTSUPP))?;
            context_parts(n, all.get(&n).ok_or_else(|| no(ENOENT))?)?
        }
    };
    let state = ioctl::Rxfh {
        context: parts.context.unwrap_or(0),
        indir: parts.indir,
        key: parts.hkey,
        hfunc: parts.hfunc.unwrap_or(0) as u8,
        input_xfrm: parts.input_xfrm.unwrap_or(0) as u8,
    };
    ioctl::grssh_reply(payload, &state).map_err(bad)
}

/// `None`: a request of another family.
pub(super) fn set(s: &mut State, request: &Request) -> Option<Result<Vec<Vec<u8>>>> {
    match request {
        Request::EthtoolSet { name, dev, attrs, .. } if name.starts_with("rss-") => {
            Some(set_by_netlink(s, name, dev, attrs))
        }
        Request::Ioctl { cmd: IoctlCmd::RssSet, dev, payload } => Some(set_by_ioctl(s, dev, payload)),
        Request::Ioctl { cmd: IoctlCmd::RxfhFieldsSet, dev, payload } => {
            let mut set = || {
                let (flow, letters) = (ioctl::grxfh_flow(payload).map_err(bad)?, ioctl::grxfh(payload).map_err(bad)?);
                set_fields(s, dev, &BTreeMap::from([(flow.to_string(), letters)]), false)
            };
            Some(set().map(|()| vec![payload.clone()]))
        }
        _ => None,
    }
}

fn words(errno: i32, words: impl Into<String>) -> Error {
    Error { words: Some(words.into()), ..no(errno) }
}

fn set_by_netlink(s: &mut State, name: &str, dev: &str, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    // net/ethtool/netlink.c has no such command before.
    if s.version() < BY_NETLINK {
        return Err(no(EOPNOTSUPP));
    }
    let o = nl::rss_set_decode(bytes).map_err(bad)?;
    let context = o.context.unwrap_or(0);
    if name == "rss-delete-act" {
        return delete(s, i, context).map(|()| Vec::new());
    }
    let nic = &s.nics[i];
    let Fact::Known(rss) = &nic.rss else { return Err(no(EOPNOTSUPP)) };
    let create = name == "rss-create-act";
    if (context > 0 || create) && !rss.contexts.is_known() {
        return Err(no(EOPNOTSUPP));
    }
    let now = if create || context == 0 {
        rss.table.clone()
    } else {
        let all = rss.contexts.known().and_then(|all| all.get(&context));
        all.ok_or_else(|| no(ENOENT))?.table.clone()
    };
    let queues = nic.rx_queues.len() as u32;
    let table = match &o.indir {
        None => TableOrder::Keep,
        Some(t) if t.is_empty() && (context > 0 || create) => {
            return Err(words(EINVAL, "can't reset table for a context"));
        }
        Some(t) if t.is_empty() => TableOrder::Default,
        // net/ethtool/rss.c, rss_set_prep_indir
        Some(t) if now.is_empty() || !now.len().is_multiple_of(t.len()) => {
            let text = format!("size ({}) mismatch with device indir table ({})", t.len(), now.len());
            return Err(words(EINVAL, text));
        }
        Some(t) => {
            if let Some((at, q)) = t.iter().enumerate().find(|(_, q)| **q >= queues) {
                return Err(words(EINVAL, format!("entry {at}: queue out of range ({q})")));
            }
            TableOrder::Set(t.iter().copied().cycle().take(now.len()).collect())
        }
    };
    set_fields(s, dev, &o.fields, true)?;
    // The kernel compares bytes instead of entries, so it misses a difference in the rest of the table.
    // net/ethtool/rss.c, rss_set_prep_indir. lab: "is written all the same", "and is there"
    let told = match &table {
        TableOrder::Set(t) => t[..t.len() / 4] != now[..now.len() / 4],
        TableOrder::Default => driver::round_robin(now.len(), queues)[..now.len() / 4] != now[..now.len() / 4],
        TableOrder::Keep => false,
    };
    if !create && !told && o.hkey.is_none() && o.hfunc.is_none() && o.input_xfrm.is_none() {
        if context == 0 && o.indir.is_some() {
            s.extra[i].rss_by_user = table != TableOrder::Default;
        }
        return Ok(Vec::new());
    }
    let key = o.hkey.unwrap_or_default();
    let order = Order { context, create, table, key, hfunc: o.hfunc, xfrm: o.input_xfrm };
    let made = act(s, i, order)?;
    let rss = fact(&s.nics[i].rss)?;
    match rss.contexts.known().and_then(|all| all.get(&made)) {
        Some(c) if create => Ok(vec![nl::rss_reply(&context_parts(made, c)?).map_err(bad)?]),
        _ => Ok(Vec::new()),
    }
}

fn set_by_ioctl(s: &mut State, dev: &str, payload: &[u8]) -> Result<Vec<Vec<u8>>> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let o = ioctl::srssh_decode(payload).map_err(bad)?;
    let Fact::Known(rss) = &s.nics[i].rss else { return Err(no(EOPNOTSUPP)) };
    if o.context > 0 && !rss.contexts.is_known() {
        return Err(no(EOPNOTSUPP));
    }
    if o.input_xfrm > 0 && s.version() < SYMMETRIC {
        return Err(no(EINVAL));
    }
    // The kernel reads the key behind a whole table, where the message contains none.
    // lab: "RSS: a key with the default table is read from behind a whole one"
    if o.table == TableOrder::Default && !o.key.is_empty() && s.version() < LIST {
        return Err(no(EFAULT));
    }
    let create = o.context == ioctl::CONTEXT_ALLOC;
    if o.context > 0 && !create && o.table == TableOrder::Default {
        return delete(s, i, o.context).map(|()| vec![payload.to_vec()]);
    }
    let now = rss.symmetric.known().and_then(|x| nl::xfrm_mask(x));
    let order = Order {
        context: if create { 0 } else { o.context },
        create,
        table: o.table,
        key: o.key,
        hfunc: (o.hfunc != 0).then_some(u32::from(o.hfunc)),
        xfrm: Some(u32::from(o.input_xfrm)).filter(|x| Some(*x) != now),
    };
    let made = act(s, i, order)?;
    Ok(vec![ioctl::srssh_reply(payload, made)])
}

struct Order {
    /// 0 creates a context with the lowest free number.
    context: u32,
    create: bool,
    table: TableOrder,
    key: Vec<u8>,
    hfunc: Option<u32>,
    xfrm: Option<u32>,
}

/// The context of the request.
fn act(s: &mut State, i: usize, o: Order) -> Result<u32> {
    let made = store(s, i, o)?;
    if s.extra[i].quirks.contains(&Quirk::TableTakesLinkDown) {
        let now = s.now;
        s.extra[i].link_down_until(now + Duration::from_secs(8));
        s.stale(i);
    }
    Ok(made)
}

fn store(s: &mut State, i: usize, o: Order) -> Result<u32> {
    let by = s.version();
    let driver = s.extra[i].driver;
    let nic = &mut s.nics[i];
    let queues = nic.rx_queues.len() as u32;
    let Fact::Known(rss) = &mut nic.rss else { return Err(no(EOPNOTSUPP)) };
    let size = rss.table.len();
    if size == 0 {
        return Err(no(EOPNOTSUPP));
    }
    let table = match &o.table {
        TableOrder::Keep => None,
        // The kernel writes its own default. lab: "igb: the kernel's default table goes round"
        TableOrder::Default => Some(driver::round_robin(size, queues)),
        // lab: "RSS: a queue that does not exist"
        TableOrder::Set(t) if t.len() != size || t.iter().any(|q| *q >= queues) => return Err(no(EINVAL)),
        TableOrder::Set(t) => Some(t.clone()),
    };
    let key_size = rss.key.known().map_or(0, |k| k.len() / 2);
    // lab: "RSS: a key of the wrong length"
    if !o.key.is_empty() && o.key.len() != key_size {
        return Err(no(EINVAL));
    }
    let function = o.hfunc.map(nl::hfunc_name);
    // drivers: igb_set_rxfh, virtnet_set_rxfh, lab/mqnic/rss.c
    if driver != SimulatedDriver::Other && function.as_ref().is_some_and(|f| Some(f) != rss.function.known()) {
        return Err(no(EOPNOTSUPP));
    }
    let symmetric = o.xfrm.map(nl::xfrm_name);
    // lab: "RSS: a symmetric transform igb has not"
    let takes = driver == SimulatedDriver::Other || driver == SimulatedDriver::Mqnic && by >= LIST;
    if !takes && symmetric.as_ref().is_some_and(|x| x != "none") {
        return Err(no(EOPNOTSUPP));
    }
    let key = (!o.key.is_empty()).then(|| attrs::hex(&o.key));
    if o.create {
        let Fact::Known(all) = &mut rss.contexts else { return Err(no(EOPNOTSUPP)) };
        let free = || (1..).find(|n| !all.contains_key(n)).unwrap_or(1);
        let number = if o.context == 0 { free() } else { o.context };
        if all.contains_key(&number) {
            return Err(words(EBUSY, "error allocating context ID"));
        }
        let table = table.unwrap_or_else(|| driver::round_robin(size, queues));
        let key = key.or_else(|| rss.key.known().cloned());
        all.insert(number, RssContext { table, key });
        return Ok(number);
    }
    if o.context > 0 {
        let Fact::Known(all) = &mut rss.contexts else { return Err(no(EOPNOTSUPP)) };
        let c = all.get_mut(&o.context).ok_or_else(|| no(ENOENT))?;
        c.table = table.unwrap_or_else(|| c.table.clone());
        c.key = key.or_else(|| c.key.clone());
        return Ok(o.context);
    }
    // vmxnet3 also accepts the table and reads it back. lab: "vmxnet3: takes a table", "vmxnet3: and reads it back"
    if let Some(t) = table {
        rss.table = t;
        s.extra[i].rss_by_user = o.table != TableOrder::Default;
    }
    if let Some(k) = key {
        rss.key = Fact::Known(k);
    }
    if let Some(f) = function {
        rss.function = Fact::Known(f);
    }
    if let Some(x) = symmetric {
        rss.symmetric = Fact::Known(x);
    }
    Ok(0)
}

/// net/ethtool/ioctl.c, ethtool_check_rss_ctx_busy
fn delete(s: &mut State, i: usize, context: u32) -> Result<()> {
    let nic = &mut s.nics[i];
    if nic.rules.known().is_some_and(|r| r.rules.values().any(|r| r.context == Some(context))) {
        return Err(no(EBUSY));
    }
    let Fact::Known(rss) = &mut nic.rss else { return Err(no(EOPNOTSUPP)) };
    let Fact::Known(all) = &mut rss.contexts else { return Err(no(EOPNOTSUPP)) };
    all.remove(&context).map(|_| ()).ok_or_else(|| no(ENOENT))
}

/// What the drivers of the lab accept. lab: "fields: igb hashes TCP by ports or not at all"; vmxnet3 accepts no fields
fn takes(driver: SimulatedDriver, flow: &str, letters: &str) -> i32 {
    let ports = matches!(letters, "sdfn");
    let plain = letters == "sd";
    match (driver, &flow[..flow.len() - 1]) {
        (SimulatedDriver::Vmxnet3 | SimulatedDriver::E1000e, _) => EOPNOTSUPP,
        (SimulatedDriver::Igb, "tcp") if ports => 0,
        (SimulatedDriver::Igb, "udp") if ports || plain => 0,
        (SimulatedDriver::Igb, "sctp" | "ah" | "esp" | "ah-esp") if plain => 0,
        (SimulatedDriver::Virtio, "tcp" | "udp") if ports || plain => 0,
        (SimulatedDriver::Mqnic, "tcp" | "udp" | "sctp") if fields::mask(letters).is_ok_and(|m| m & !0xf0 == 0) => 0,
        (SimulatedDriver::Other, _) => 0,
        _ => EINVAL,
    }
}

fn set_fields(s: &mut State, dev: &str, wanted: &BTreeMap<String, String>, by_netlink: bool) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let driver = s.extra[i].driver;
    let Fact::Known(rss) = &mut s.nics[i].rss else { return Err(no(EOPNOTSUPP)) };
    for (flow, letters) in wanted {
        let now = rss.fields.get_mut(flow);
        if by_netlink && now.as_ref().is_some_and(|n| *n == letters) {
            continue;
        }
        match (takes(driver, flow, letters), now) {
            (0, Some(n)) => n.clone_from(letters),
            (0, None) => return Err(no(EINVAL)),
            (errno, _) => return Err(no(errno)),
        }
    }
    Ok(())
}

/// Highest queue that a table set by a user, or a context, names.
pub(super) fn highest(rss: &Rss, by_user: bool) -> Option<u32> {
    let own = rss.table.iter().filter(|_| by_user);
    let contexts = rss.contexts.known().into_iter().flat_map(|all| all.values());
    own.chain(contexts.flat_map(|c| &c.table)).max().copied()
}

/// Another program runs `ethtool -X`. `None`: the default table.
pub(super) fn set_table(s: &mut State, dev: &str, table: Option<&[u32]>) -> Result<()> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let table = table.map_or(TableOrder::Default, |t| TableOrder::Set(t.to_vec()));
    let order = Order { context: 0, create: false, table, key: Vec::new(), hfunc: None, xfrm: None };
    act(s, i, order).map(|_| ())
}

/// Another program runs `ethtool -X … context new`.
pub(super) fn make_context(s: &mut State, dev: &str, table: &[u32]) -> Result<u32> {
    let i = s.index(dev).ok_or_else(|| no(ENODEV))?;
    let table = TableOrder::Set(table.to_vec());
    act(s, i, Order { context: 0, create: true, table, key: Vec::new(), hfunc: None, xfrm: None })
}
