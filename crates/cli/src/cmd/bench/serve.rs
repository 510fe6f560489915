//! `ringwise bench serve`: the other end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ringwise_bench::limits::Allowed;
use ringwise_bench::serve;
use ringwise_sys::proc;

use super::workload::secret;
use crate::args::{Common, ServeArgs};
use crate::exit::{Fail, Result, Status};
use crate::out;

pub(super) fn run(a: &ServeArgs, common: &Common) -> Result<Status> {
    let secret = secret(a.secret_file.as_deref())?;
    let flag = proc::install_signal_flag().map_err(Fail::from)?;
    let stop = Arc::new(AtomicBool::new(false));
    if a.stdio {
        // The namespace must be entered before a second thread exists.
        return match serve::serve_stdio(a.netns.as_deref(), &stop) {
            Ok(_) => Ok(Status::Ok),
            Err(e) => Err(Fail::error(e.to_string())),
        };
    }
    if let Some(name) = &a.netns {
        ringwise_sys::load::enter_netns(name).map_err(Fail::from)?;
    }
    let seen = stop.clone();
    let watch = move || {
        while flag.raised().is_none() {
            std::thread::sleep(Duration::from_millis(50));
        }
        seen.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(watch)
        .map_err(|e| Fail::io("cannot start the thread that waits for signals", &e))?;
    let addr = a.listen.ok_or_else(|| Fail::usage("serve needs --listen ADDR:PORT or --stdio"))?;
    if addr.ip().is_unspecified() {
        return Err(Fail::usage(format!(
            "{addr} means every address of this host: name the address of the control network, e.g. 192.0.2.7:{}",
            addr.port()
        )));
    }
    if secret.is_none() && !addr.ip().is_loopback() {
        return Err(Fail::usage(format!(
            "{addr} can be reached from other hosts, and without a secret any of them could make this host send packets"
        ))
        .next("head -c 24 /dev/urandom | base64 >secret.txt, and --secret-file secret.txt at both ends; or --ssh"));
    }
    let say = |text: &str| out::later(common.quiet, format!("ringwise: {text}"));
    let mut opened = |at: SocketAddr| {
        out::note(common.quiet, &format!("ringwise: listening on {at}"));
        if addr.port() == 0 {
            // The kernel chose the port, so the address is the answer. The server runs even if the reader has closed
            // the pipe.
            let _ = out::answer(&format!("{at}\n"));
        }
    };
    let allowed = Allowed { targets: a.allow_target.clone(), pktgen: a.allow_pktgen.clone() };
    let served = serve::serve(addr, secret.as_deref(), &allowed, &stop, &mut opened, &say);
    served.map_err(|e| Fail::error(e.to_string()))?;
    Ok(Status::Ok)
}
