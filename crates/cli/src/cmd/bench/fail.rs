//! Errors of a session, with their exit status and the next command.

use ringwise_bench::side;
use ringwise_experiment::{Class, Error};

use crate::cmd::transaction;
use crate::exit::{Fail, Status};

impl From<Error> for Fail {
    fn from(e: Error) -> Self {
        let status = match e.class() {
            Class::Usage => Status::Usage,
            Class::Failed => Status::Error,
            Class::Refused => Status::Refused,
            Class::PutBack => Status::PutBack,
            Class::NotPutBack => Status::NotPutBack,
        };
        let fail = match &e {
            Error::Apply { error, .. } => transaction::fail(error),
            Error::Sys(error) => Fail::from(error.clone()),
            Error::Stopped => Fail::error("").code("stopped"),
            Error::ResultsExist(path) => Fail::error("").code("file_exists").file(path),
            Error::Results { path, error } => Fail::io("", error).file(path),
            Error::TrialEnded(_) => Fail::error("").code("trial_ended"),
            _ => Fail::error(""),
        };
        Fail { status, message: e.to_string(), next: next(&e), ..fail }
    }
}

fn next(e: &Error) -> Option<String> {
    Some(match e {
        Error::NoLink { dev } => format!("ip link set {dev} up"),
        Error::WithoutLink { error, .. } => return next(error),
        Error::Discover(ringwise_discover::Error::NoSuchDevice { .. }) => "ringwise show --all".into(),
        Error::NotDetectable { need, .. } => format!("--pairs {need}, or longer trials (--trial)"),
        Error::Side(side::Error::Versions { .. }) => "ringwise --version at both ends".into(),
        Error::Side(side::Error::Lost { .. } | side::Error::Late { .. }) => {
            "ringwise bench serve at the other end".into()
        }
        Error::NoAddress { dev, .. } => format!("ip address add ADDR/LEN dev {dev}, or --address"),
        Error::CpusUnknown { here, .. } => format!("{} LIST", if *here { "--cpus" } else { "--peer-cpus" }),
        Error::TooShort { error, seconds } => {
            let need = (seconds * f64::from(error.needed) / 60.0).ceil();
            format!("--budget {need}m, or a shorter --trial")
        }
        Error::TimeOver => "a longer --budget, or a shorter --trial".into(),
        Error::Apply { error, .. } => return transaction::fail(error).next,
        Error::StillPuttingBack(id) => format!("ringwise history {id}"),
        Error::PutBackIncomplete { .. } => "ringwise recover".into(),
        _ => return None,
    })
}
