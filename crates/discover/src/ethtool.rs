//! Requests of the ethtool netlink family and of the ethtool ioctl.

use ringwise_kfmt::ParseError;
use ringwise_model::Fact;
use ringwise_sys::{IoctlCmd, Request};

use crate::read::Reader;

pub(crate) fn request(dev: &str, cmd: u8, name: &'static str) -> Request {
    Request::EthtoolGet { cmd, name, dev: dev.to_string() }
}

/// One GET for one device, which has exactly one message as its answer.
pub(crate) fn get<T>(
    r: &mut Reader,
    dev: &str,
    cmd: u8,
    name: &'static str,
    decode: impl FnOnce(&[u8]) -> Result<T, ParseError>,
) -> Fact<T> {
    r.ask(&request(dev, cmd, name), |reply| decode(first(reply)?))
}

/// One ioctl with a struct that is sent and returned.
pub(crate) fn ioctl(dev: &str, cmd: IoctlCmd, payload: Vec<u8>) -> Request {
    Request::Ioctl { cmd, dev: dev.to_string(), payload }
}

/// The first message of a reply.
pub(crate) fn first(reply: &[Vec<u8>]) -> Result<&[u8], ParseError> {
    reply.first().map(Vec::as_slice).ok_or_else(|| ParseError::new("kernel reply", "", "one message"))
}
