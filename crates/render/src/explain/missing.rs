//! What to do where the queue of a flow is unknown, because the hash key or the steering rules could not be read.

use ringwise_flow::Undecided;
use ringwise_model::{Cause, Nic};
use ringwise_text::{Style, hang};

/// The program that made a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedBy {
    /// `ringwise capture`. `None`: the recording does not contain the version.
    Ringwise {
        /// `0.1.0`
        version: Option<String>,
    },
    /// Another one: a sos report, or an archive of /proc and /sys.
    Other,
}

/// Explains why a recording lacks values, if other recordings have them. `here`: the version of this program.
pub(super) fn of_recording(by: Option<&RecordedBy>, here: &str) -> Option<String> {
    match by? {
        RecordedBy::Ringwise { version: Some(v) } if is_older(v, here) => Some(format!(
            "ringwise {v} made this recording. It recorded less than this version ({here}): record the host again with \
             ringwise capture"
        )),
        RecordedBy::Ringwise { version: None } => Some(
            "this recording does not contain the version of ringwise that made it. Older versions recorded less: record \
             the host again with ringwise capture"
                .into(),
        ),
        RecordedBy::Ringwise { .. } => None,
        RecordedBy::Other => Some(
            "another program made this recording. ringwise capture also records the answers of the kernel to ethtool's \
             requests"
                .into(),
        ),
    }
}

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

/// The recording's remark as a line of the page.
pub(super) fn remark(by: Option<&RecordedBy>, width: Option<usize>) -> String {
    of_recording(by, env!("CARGO_PKG_VERSION")).map_or_else(String::new, |text| hang("Recording: ", &text, width))
}

/// Compares versions such as `0.10.0`. Unknown forms are not older.
fn is_older(version: &str, than: &str) -> bool {
    let parts = |v: &str| -> Option<Vec<u64>> {
        let numbers = v.split_once(['-', '+']).map_or(v, |(numbers, _)| numbers);
        numbers.split('.').map(|part| part.parse().ok()).collect()
    };
    matches!((parts(version), parts(than)), (Some(a), Some(b)) if a < b)
}

#[cfg(test)]
mod tests {
    use ringwise_model::Unread;

    use super::*;

    #[test]
    fn a_recording_of_an_older_version_lacks_values() {
        let of = |version: Option<&str>| RecordedBy::Ringwise { version: version.map(str::to_string) };
        let remark = |by: RecordedBy| of_recording(Some(&by), "0.10.0");
        let older = "ringwise 0.9.1 made this recording. It recorded less than this version (0.10.0): record the host \
                     again with ringwise capture";
        assert_eq!(remark(of(Some("0.9.1"))).as_deref(), Some(older));
        assert_eq!((remark(of(Some("0.10.0"))), remark(of(Some("1.0.0"))), remark(of(Some("x")))), (None, None, None));
        assert!(remark(of(None)).unwrap().starts_with("this recording does not contain the version"));
        assert!(remark(RecordedBy::Other).unwrap().starts_with("another program"));
        assert_eq!(of_recording(None, "0.10.0"), None);
    }

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
