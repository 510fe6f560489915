//! Reads from the host into `Fact`s: absent stays absent, any other error becomes unknown with its reason.

use ringwise_kfmt::ParseError;
use ringwise_model::errno::{EACCES, EPERM};
use ringwise_model::{Fact, Unread};
use ringwise_sys::{Error, Host, Request};

/// Why a value could not be read. `what` is the path or the request, without the verb.
pub(crate) fn unread(what: &str, e: &Error) -> Unread {
    let why = match (e.errno, &e.words) {
        (Some(EPERM | EACCES), None) => "needs root".to_string(),
        (Some(EPERM | EACCES), Some(w)) => format!("needs root: {w}"),
        _ => e.reason(),
    };
    Unread::new(what, e.errno, why).because(e.cause)
}

/// A failed read as a fact: "does not exist" is absent, any other error unknown.
pub(crate) fn failed<T>(what: &str, e: &Error) -> Fact<T> {
    if e.is_absent() { Fact::Absent } else { Fact::Unknown(unread(what, e)) }
}

/// Reads of one device or one part of the host; collects what could not be read.
pub(crate) struct Reader<'h> {
    pub host: &'h dyn Host,
    pub unread: Vec<Unread>,
}

impl<'h> Reader<'h> {
    pub(crate) fn new(host: &'h dyn Host) -> Self {
        Self { host, unread: Vec::new() }
    }

    /// Also adds the reason of an unknown fact to the list.
    pub(crate) fn note<T>(&mut self, fact: Fact<T>) -> Fact<T> {
        if let Fact::Unknown(u) = &fact {
            self.unread.push(u.clone());
        }
        fact
    }

    /// A text file without trailing white space.
    pub(crate) fn text(&mut self, path: &str) -> Fact<String> {
        let fact = match self.host.read_text(path) {
            Ok(t) => Fact::Known(t),
            Err(e) => failed(path, &e),
        };
        self.note(fact)
    }

    /// A text file and its parser.
    pub(crate) fn parse<T>(&mut self, path: &str, parse: impl FnOnce(&str) -> Result<T, ParseError>) -> Fact<T> {
        let fact = match self.host.read_text(path) {
            Ok(t) => parsed(path, parse(&t)),
            Err(e) => failed(path, &e),
        };
        self.note(fact)
    }

    /// The same, where an errno of `absent` means that the value does not exist (`EINVAL` of `carrier` while down).
    pub(crate) fn parse_or_absent<T>(
        &mut self,
        path: &str,
        absent: &[i32],
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Fact<T> {
        let fact = match self.host.read_text(path) {
            Ok(t) => parsed(path, parse(&t)),
            Err(e) if e.errno.is_some_and(|n| absent.contains(&n)) => Fact::Absent,
            Err(e) => failed(path, &e),
        };
        self.note(fact)
    }

    /// Names in a directory.
    pub(crate) fn list(&mut self, path: &str) -> Fact<Vec<String>> {
        let fact = match self.host.list(path) {
            Ok(names) => Fact::Known(names),
            Err(e) => failed(path, &e),
        };
        self.note(fact)
    }

    /// Last part of a link's target.
    pub(crate) fn link_name(&mut self, path: &str) -> Fact<String> {
        let fact = match self.host.readlink(path) {
            Ok(target) => match target.rsplit('/').find(|p| !p.is_empty()) {
                Some(name) => Fact::Known(name.to_string()),
                None => Fact::unknown(path, "the symbolic link has an empty target"),
            },
            Err(e) => failed(path, &e),
        };
        self.note(fact)
    }

    /// [`Reader::ask`] for what only later versions record: it is not reported if an older recording does not have it.
    pub(crate) fn ask_later<T>(
        &mut self,
        request: &Request,
        decode: impl FnOnce(&[Vec<u8>]) -> Result<T, ParseError>,
    ) -> Fact<T> {
        match self.host.kernel(request) {
            Err(e) if self.is_older_recording(&e) => failed(&request.to_string(), &e),
            Err(e) => self.note(failed(&request.to_string(), &e)),
            Ok(reply) => self.note(parsed(&request.to_string(), decode(&reply))),
        }
    }

    /// [`Reader::parse`] for the same case.
    pub(crate) fn parse_later<T>(&mut self, path: &str, parse: impl FnOnce(&str) -> Result<T, ParseError>) -> Fact<T> {
        match self.host.read_text(path) {
            Err(e) if self.is_older_recording(&e) => failed(path, &e),
            Err(e) => self.note(failed(path, &e)),
            Ok(t) => self.note(parsed(path, parse(&t))),
        }
    }

    /// The recording contains no answer, not even an error.
    pub(crate) fn is_older_recording(&self, e: &Error) -> bool {
        e.errno.is_none() && self.host.is_recorded()
    }

    /// A kernel request and the decoder of its reply.
    pub(crate) fn ask<T>(
        &mut self,
        request: &Request,
        decode: impl FnOnce(&[Vec<u8>]) -> Result<T, ParseError>,
    ) -> Fact<T> {
        let fact = match self.host.kernel(request) {
            Ok(reply) => parsed(&request.to_string(), decode(&reply)),
            Err(e) => failed(&request.to_string(), &e),
        };
        self.note(fact)
    }
}

fn parsed<T>(what: &str, result: Result<T, ParseError>) -> Fact<T> {
    match result {
        Ok(v) => Fact::Known(v),
        Err(e) => Fact::Unknown(Unread::new(what, None, e.to_string())),
    }
}
