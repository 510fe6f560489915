//! Converts between the kernel's text and binary formats and values of the model. The crate does no I/O: the
//! callers read and write.
//!
//! Every parser reads `&str` or `&[u8]` from a host that may be broken or old, or from a forged capture: it returns
//! [`ParseError`], never panics, and its memory is bounded by a small multiple of the input.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod audit;
pub mod cmdline;
pub mod cpulist;
pub mod cpumask;
mod error;
pub mod ethtool_ioctl;
pub mod ethtool_nl;
pub mod ethtool_text;
pub mod free_vectors;
pub mod inet_diag;
pub mod ini;
pub mod interrupts;
pub mod ip_text;
pub mod irq_names;
pub mod irqbalance;
pub mod link_stats;
pub mod lscpu_text;
pub mod net_shaper_nl;
pub mod netdev_nl;
pub mod nl;
pub mod notification;
pub mod packet;
pub mod pcap;
pub mod procstat;
pub mod qdisc;
pub mod route;
pub mod rtnl;
pub mod rule;
pub mod snmp;
pub mod sockets;
pub mod softnet;
pub mod stat_names;
pub mod sysctl;
pub mod sysfs;
pub mod task;
pub mod traffic_class;
pub mod uevent;

pub use error::ParseError;
