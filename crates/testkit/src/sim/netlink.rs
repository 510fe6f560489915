//! Kernel requests: replies from the model, and changes by [`super::kernel`].

use std::collections::BTreeMap;

use ringwise_kfmt::ethtool_ioctl as ioctl;
use ringwise_kfmt::netdev_nl::{self, Lease, QueueInfo};
use ringwise_kfmt::qdisc::{MQPRIO, Qdisc, ROOT, qdisc_reply};
use ringwise_kfmt::rtnl::{self, LinkInfo, XdpAttached};
use ringwise_kfmt::{ParseError, ethtool_nl as nl, nl as attrs};
use ringwise_model::errno::{EINVAL, ENODEV, ENOENT, EOPNOTSUPP};
use ringwise_model::{CpuId, Dir, Fact, IfIndex, Nic, NicKind, User};
use ringwise_sys::{IoctlCmd, Request, Result};

use super::refusal::{bad, fact, no};
use super::{State, kernel, rules};

pub(super) fn get(s: &State, request: &Request) -> Result<Vec<Vec<u8>>> {
    let found = |dev: &str| s.index(dev).ok_or_else(|| no(ENODEV));
    match request {
        Request::Links => (0..s.nics.len()).map(|i| link(s, i)).collect(),
        Request::Addrs => {
            let mut out = Vec::new();
            for n in &s.nics {
                for a in n.addresses.known().into_iter().flatten() {
                    out.push(rtnl::addr_reply(n.dev.ifindex.map_or(0, |i| i.0), a).map_err(bad)?);
                }
            }
            Ok(out)
        }
        // No user is logged in by ssh and there is no route, unless a test sets them.
        Request::Sessions if s.sessions_unreadable => Err(no(13)),
        Request::Sessions => Ok(s.sessions.iter().map(|t| t.clone().into_bytes()).collect()),
        Request::DefaultRoutes => {
            Ok(vec![b"Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n".to_vec(), Vec::new()])
        }
        Request::Route { to } => {
            // ENETUNREACH
            let out = s.routes.get(to).copied().ok_or_else(|| no(101))?;
            let route = ringwise_kfmt::route::Route { local: false, out: Some(out), gateway: None };
            Ok(vec![ringwise_kfmt::route::route_reply(&route).map_err(bad)?])
        }
        Request::EthtoolGet { name, dev, .. } => {
            let i = found(dev)?;
            let nic = &s.nics[i];
            let reply = match *name {
                "channels-get" => nl::channels_reply(fact(&nic.channels)?),
                "rings-get" => nl::rings_reply(fact(&nic.rings)?),
                "coalesce-get" => nl::coalesce_reply(fact(&nic.coalesce)?).map_err(bad)?,
                "pause-get" => nl::pause_reply(fact(&nic.pause)?),
                "features-get" => nl::features_reply(fact(&nic.features)?).map_err(bad)?,
                "privflags-get" => nl::private_flags_reply(fact(&nic.private_flags)?).map_err(bad)?,
                "rss-get" => super::rss::get(s, nic)?,
                _ => return Err(no(EOPNOTSUPP)),
            };
            Ok(vec![reply])
        }
        Request::EthtoolDump { name: "rss-get", dev, .. } => super::rss::list(s, &s.nics[found(dev)?]),
        Request::EthtoolDump { .. } => Err(no(EOPNOTSUPP)),
        Request::NetdevDump { name, dev, .. } => {
            let nic = &s.nics[found(dev)?];
            // lab: "netdev-genl: not before 6.8"
            if s.version() < (6, 8) {
                return Err(no(ENOENT));
            }
            match *name {
                "queue-get" => queues(nic),
                "napi-get" => Ok(super::napi::replies(nic)),
                "dev-get" => Ok(vec![netdev_nl::xdp_metadata_reply(Some(fact(&nic.xdp_metadata)?))]),
                _ => Err(no(EOPNOTSUPP)),
            }
        }
        Request::NetShaperDump { dev } => {
            let nic = &s.nics[found(dev)?];
            // include/uapi/linux/net_shaper.h: since 6.13.
            if s.version() < (6, 13) {
                return Err(no(ENOENT));
            }
            let index = nic.dev.ifindex.unwrap_or(IfIndex(0));
            let list = fact(&nic.shapers)?.list().iter();
            list.map(|one| ringwise_kfmt::net_shaper_nl::shaper_reply(index, one).map_err(bad)).collect()
        }
        Request::Ioctl { cmd, dev, payload } => {
            let nic = &s.nics[found(dev)?];
            let reply = match cmd {
                IoctlCmd::DrvinfoGet => ioctl::drvinfo_reply(&ioctl::Drvinfo {
                    driver: fact(&nic.driver)?.clone(),
                    bus_info: nic.dev.bus_address.clone().unwrap_or_default(),
                    ..Default::default()
                }),
                IoctlCmd::RssGet | IoctlCmd::RxfhFieldsGet => super::rss::get_by_ioctl(s, nic, *cmd, payload)?,
                IoctlCmd::RuleCount | IoctlCmd::RuleGet | IoctlCmd::RuleList => rules::get(nic, *cmd, payload)?,
                IoctlCmd::PerQueue => super::moderation::get_queues(s, found(dev)?, payload)?,
                IoctlCmd::RssSet | IoctlCmd::RxfhFieldsSet | IoctlCmd::RuleDelete | IoctlCmd::RuleInsert => {
                    return Err(no(EINVAL));
                }
            };
            Ok(vec![reply])
        }
        // No packets are forwarded here, and none is counted.
        Request::Link { dev } => Ok(vec![link(s, found(dev)?)?]),
        Request::Qdiscs => {
            let with = s.nics.iter().filter_map(|n| Some((n.dev.ifindex?.0, n.classes.known()?.clone())));
            let root = |(ifindex, classes)| Qdisc {
                ifindex,
                parent: ROOT,
                kind: MQPRIO.into(),
                classes: Some(classes),
                ..Qdisc::default()
            };
            with.map(|q| qdisc_reply(&root(q)).map_err(bad)).collect()
        }
        Request::EthtoolStats { dev, .. } | Request::StatNames { dev } | Request::StatValues { dev } => {
            found(dev)?;
            Err(no(EOPNOTSUPP))
        }
        Request::Irqbalance { socket, command } => super::others::ask(s, socket, command),
        Request::Sleep { cpus } => {
            let cpus = cpus.iter().map(|c| CpuId(*c));
            let reply = cpus.filter_map(|c| match (s.topology.online.contains(c), s.late_cpus.contains_key(&c)) {
                (false, _) => Some((c, EINVAL)),
                (true, late) => late.then_some((c, 0)),
            });
            Ok(reply.map(|(c, errno)| [c.0.to_ne_bytes(), errno.to_ne_bytes()].concat()).collect())
        }
        Request::EthtoolSet { .. }
        | Request::NetdevSet { .. }
        | Request::ThreadCpus { .. }
        | Request::Place { .. }
        | Request::DaemonReload => Err(no(EINVAL)),
    }
}

/// The kernel's answer to a request without values, which does not reach the driver. lab: 615-support
/// `None`: another request. `lacks`: the test configures that the driver does not implement the call.
pub(super) fn support(s: &State, request: &Request, lacks: bool) -> Option<Result<Vec<Vec<u8>>>> {
    let Request::EthtoolSet { name, dev, attrs, .. } = request else { return None };
    let calls = ["channels-set", "rings-set", "coalesce-set", "pause-set"];
    if !attrs.is_empty() || !calls.contains(name) {
        return None;
    }
    let Some(i) = s.index(dev) else { return Some(Err(no(ENODEV))) };
    let nic = &s.nics[i];
    let has = match *name {
        // lab: "vmxnet3: -L is refused"
        "channels-set" => nic.channels.known().is_some() && kernel::sets_channels(s.extra[i].driver),
        "rings-set" => nic.rings.known().is_some(),
        "coalesce-set" => nic.coalesce.known().is_some(),
        _ => nic.pause.known().is_some(),
    };
    Some(if has && !lacks { Ok(Vec::new()) } else { Err(no(EOPNOTSUPP)) })
}

/// A request that changes something, after the faults were applied. Returns the messages of the reply, if any.
pub(super) fn set(s: &mut State, request: &Request) -> Result<Vec<Vec<u8>>> {
    super::rss::set(s, request).unwrap_or_else(|| order(s, request).map(|()| Vec::new()))
}

fn order(s: &mut State, request: &Request) -> Result<()> {
    match request {
        Request::EthtoolSet { name, dev, attrs: bytes, .. } => match *name {
            "channels-set" => {
                let mut counts = BTreeMap::new();
                for a in attrs::attrs(bytes) {
                    let a = a.map_err(bad)?;
                    counts.insert(a.kind, a.u32().map_err(bad)?);
                }
                kernel::set_channels(s, dev, &counts)
            }
            "rings-set" => kernel::set_rings(s, dev, &nl::rings_set_decode(bytes).map_err(bad)?),
            "features-set" => super::features::set(s, dev, &nl::features_set_decode(bytes).map_err(bad)?),
            "pause-set" => super::features::set_pause(s, dev, &nl::pause(bytes).map_err(bad)?),
            "coalesce-set" => {
                let params = nl::coalesce(bytes).map_err(bad)?;
                super::moderation::set_device(s, dev, &params.0)
            }
            // Requests that the simulation does not implement.
            _ => Err(no(EOPNOTSUPP)),
        },
        Request::Ioctl { cmd: cmd @ (IoctlCmd::RuleDelete | IoctlCmd::RuleInsert), dev, payload } => {
            rules::set(s, dev, *cmd, payload)
        }
        Request::Ioctl { cmd: IoctlCmd::PerQueue, dev, payload } => super::moderation::set_queues(s, dev, payload),
        Request::NetdevSet { dev, attrs, .. } => super::napi::set(s, dev, attrs),
        Request::ThreadCpus { pid, cpus } => super::napi::set_cpus(s, *pid, cpus),
        Request::Irqbalance { socket, command } => super::others::order(s, socket, command),
        Request::Place { path, content, .. } => {
            super::others::place(s, path, content.as_deref());
            Ok(())
        }
        Request::DaemonReload => {
            s.others.reloads += 1;
            Ok(())
        }
        _ => Err(no(EINVAL)),
    }
}

fn link(s: &State, i: usize) -> Result<Vec<u8>> {
    let nic = &s.nics[i];
    let up = s.link_is_back(i);
    let operstate = match nic.link.operstate.known().map(String::as_str) {
        Some("up") if up => Some("up"),
        Some("up") | Some("down") => Some("down"),
        Some("dormant") => Some("dormant"),
        Some("lowerlayerdown") => Some("lowerlayerdown"),
        Some(_) => Some("unknown"),
        None => None,
    };
    let carrier = nic.link.carrier.known().map(|c| *c && up);
    let loopback = nic.kind == NicKind::Loopback;
    let mut flags = rtnl::IFF_UP;
    if loopback {
        flags |= rtnl::IFF_LOOPBACK;
    }
    if carrier == Some(true) {
        flags |= rtnl::IFF_RUNNING;
    }
    let xdp = nic.users.known().into_iter().flatten().filter_map(|u| match u {
        User::Xdp { mode, program_id } => {
            let mode = ["driver", "generic", "offload"].into_iter().find(|m| m == mode)?;
            Some(XdpAttached { mode, program_id: *program_id })
        }
        _ => None,
    });
    let info = LinkInfo {
        ifindex: nic.dev.ifindex.map_or(0, |x| x.0),
        link_type: if loopback { rtnl::ARPHRD_LOOPBACK } else { rtnl::ARPHRD_ETHER },
        flags,
        name: nic.dev.name.clone(),
        kind: match &nic.kind {
            NicKind::Software { kind } => Some(kind.clone()),
            _ => None,
        },
        link: nic.lower.first().filter(|_| nic.lower.len() == 1).map(|l| l.0),
        link_in_other_netns: false,
        qdisc: match &nic.classes {
            Fact::Known(_) => Some(MQPRIO.into()),
            Fact::Absent => Some("mq".into()),
            Fact::Unknown(_) => None,
        },
        master: nic.master.map(|m| m.0),
        mac: nic.dev.permanent_mac.clone(),
        perm_mac: nic.dev.permanent_mac.clone(),
        mtu: nic.link.mtu.known().copied(),
        operstate,
        carrier,
        num_rx_queues: Some(
            nic.channels
                .known()
                .map_or(nic.rx_queues.len() as u32, |c| c.combined.map_or(0, |c| c.max) + c.rx.map_or(0, |c| c.max)),
        ),
        num_tx_queues: Some(
            nic.channels
                .known()
                .map_or(nic.tx_queues.len() as u32, |c| c.combined.map_or(0, |c| c.max) + c.tx.map_or(0, |c| c.max)),
        ),
        xdp: xdp.collect(),
        altnames: Vec::new(),
        alias: None,
        parent_dev: nic.dev.bus_address.clone().map(|b| match nic.kind {
            NicKind::Virtio => super::files::virtio_name(nic, i),
            _ => b,
        }),
        parent_bus: nic.dev.bus_address.as_ref().map(|_| match nic.kind {
            NicKind::Virtio => "virtio".to_string(),
            _ => "pci".to_string(),
        }),
    };
    rtnl::link_reply(&info).map_err(|e: ParseError| bad(e))
}

/// Queues are listed by every driver; only some link them to NAPI instances.
/// lab: "netdev-genl: eth0 lists its queues", "netdev-genl: mq0 links them to NAPI instances"
fn queues(nic: &Nic) -> Result<Vec<Vec<u8>>> {
    let ifindex = nic.dev.ifindex.unwrap_or(ringwise_model::IfIndex(0));
    let one = |dir: Dir, id: u32| {
        let napi = nic.vector_of(dir, id).and_then(|v| v.napi);
        let mut q = QueueInfo { napi, ..QueueInfo::unused(ifindex, dir, id) };
        // net/core/netdev-genl.c, `netdev_nl_queue_fill_one`: a transmit queue has no users but AF_XDP sockets.
        for user in nic.queue_users().filter(|u| u.queue() == Some(id)) {
            match user {
                User::AfXdp { .. } => q.xsk = true,
                User::Dmabuf { id, .. } if dir == Dir::Rx => q.dmabuf = Some(*id),
                User::IoUring { .. } if dir == Dir::Rx => q.io_uring = true,
                User::Lease { ifindex, leased_as, netns, .. } if dir == Dir::Rx => {
                    q.lease = Some(Lease { ifindex: *ifindex, queue: *leased_as, netns: *netns });
                }
                _ => {}
            }
        }
        netdev_nl::queue_reply(&q).map_err(bad)
    };
    let rx = nic.rx_queues.iter().map(|q| one(Dir::Rx, q.id));
    rx.chain(nic.tx_queues.iter().map(|q| one(Dir::Tx, q.id))).collect()
}
