//! Commands that a page proposes, ready to copy into a shell.

use std::path::Path;

use ringwise_model::shell::quote;

/// The recording that a page is about, if it is not about this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingName(Option<String>);

impl RecordingName {
    /// The file of `--from`; `None`: the page is about this host.
    pub fn of(file: Option<&Path>) -> Self {
        Self(file.map(|f| quote(&f.display().to_string())))
    }

    /// Whether the page is about a recording.
    pub fn is_one(&self) -> bool {
        self.0.is_some()
    }

    /// How a page names its host: by its name, or if that is unknown, by the recording.
    pub fn host(&self, name: Option<&str>) -> String {
        match (name, &self.0) {
            (Some(name), _) => name.to_string(),
            (None, Some(file)) => format!("host recorded in {file}"),
            (None, None) => "this host".into(),
        }
    }

    /// A command that only reads: `ringwise plan eth0 --from FILE`.
    pub fn reads(&self, command: impl Into<String>) -> String {
        let command = command.into();
        match &self.0 {
            Some(file) => format!("{command} --from {file}"),
            None => command,
        }
    }

    /// A command that changes the host, or reads something that a recording does not have:
    /// `on that host: ringwise apply`.
    pub fn there(&self, command: impl Into<String>) -> String {
        let command = command.into();
        if self.is_one() { format!("on that host: {command}") } else { command }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_named_again() {
        let this = RecordingName::of(None);
        assert_eq!(
            (this.reads("ringwise plan"), this.there("ringwise apply")),
            ("ringwise plan".into(), "ringwise apply".into())
        );
        let file = RecordingName::of(Some(Path::new("/tmp/a host's.tar.gz")));
        assert_eq!(file.reads("ringwise plan"), "ringwise plan --from \"/tmp/a host's.tar.gz\"");
        assert_eq!(file.there("ringwise apply"), "on that host: ringwise apply");
        assert_eq!((this.host(Some("fw2")), this.host(None)), ("fw2".into(), "this host".into()));
        assert_eq!(file.host(Some("fw2")), "fw2");
        assert_eq!(file.host(None), "host recorded in \"/tmp/a host's.tar.gz\"");
        assert_eq!(
            RecordingName::of(Some(Path::new("h.tar.gz"))).reads("ringwise show"),
            "ringwise show --from h.tar.gz"
        );
    }
}
