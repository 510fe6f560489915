//! Why a recording lacks values that other recordings have, and what to do.

use ringwise_model::words::hang;

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

impl RecordedBy {
    /// The last line of a page on which values are unknown because the recording does not contain them. Empty: a new
    /// recording would not contain them either.
    pub fn remark(&self, width: Option<usize>) -> String {
        of_recording(self, env!("CARGO_PKG_VERSION")).map_or_else(String::new, |text| hang("Recording: ", &text, width))
    }
}

/// Explains why a recording lacks values, if other recordings have them. `here`: the version of this program.
fn of_recording(by: &RecordedBy, here: &str) -> Option<String> {
    match by {
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
    use super::*;

    #[test]
    fn a_recording_of_an_older_version_lacks_values() {
        let of = |version: Option<&str>| RecordedBy::Ringwise { version: version.map(str::to_string) };
        let remark = |by: RecordedBy| of_recording(&by, "0.10.0");
        let older = "ringwise 0.9.1 made this recording. It recorded less than this version (0.10.0): record the host \
                     again with ringwise capture";
        assert_eq!(remark(of(Some("0.9.1"))).as_deref(), Some(older));
        assert_eq!((remark(of(Some("0.10.0"))), remark(of(Some("1.0.0"))), remark(of(Some("x")))), (None, None, None));
        assert!(remark(of(None)).unwrap().starts_with("this recording does not contain the version"));
        assert!(remark(RecordedBy::Other).unwrap().starts_with("another program"));
    }
}
