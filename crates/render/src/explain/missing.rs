//! What to do where the queue of a flow is unknown, because the hash key or the steering rules could not be read.

use ringwise_flow::Undecided;
use ringwise_model::{Cause, Nic};
use ringwise_text::Style;

/// Whether one of the missing values is not in the recording, as opposed to refused by the kernel.
pub(super) fn is_not_recorded(why: Option<&Undecided>, nic: Option<&Nic>) -> bool {
    let rules = nic.and_then(|n| n.rules.unread());
    why.and_then(Undecided::unread).into_iter().chain(rules).any(|u| u.cause == Cause::NotRecorded)
}

/// The command that prints the hash key on the host. `None`: the key is known, or cannot be read there either.
pub(super) fn prints_key(why: Option<&Undecided>, dev: &str) -> Option<String> {
    match why? {
        Undecided::KeyUnread { .. } => Some(format!("ethtool -x {dev}")),
        Undecided::HostKeyUnread { .. } => Some("sysctl -n net.core.netdev_rss_key".into()),
        _ => None,
    }
}

/// Where the command has to run.
pub(super) fn place(style: &Style) -> &'static str {
    if style.recording.is_one() { "on that host" } else { "as root" }
}

#[cfg(test)]
mod tests {
    use ringwise_model::Unread;

    use super::*;

    #[test]
    fn the_key_is_proposed_only_where_a_command_prints_it() {
        let unread = Unread::new("rss-get eth1", None, "not in this capture").because(Cause::NotRecorded);
        let host = Undecided::HostKeyUnread { driver: "igb".into(), unread: unread.clone() };
        assert_eq!(prints_key(Some(&host), "eth1").as_deref(), Some("sysctl -n net.core.netdev_rss_key"));
        assert!(is_not_recorded(Some(&host), None));
        let own = Undecided::KeyUnread { unread };
        assert_eq!(prints_key(Some(&own), "eth1").as_deref(), Some("ethtool -x eth1"));
        let never = Undecided::KeyNotReported { driver: "gve".into() };
        assert_eq!((prints_key(Some(&never), "eth1"), is_not_recorded(Some(&never), None)), (None, false));
    }
}
