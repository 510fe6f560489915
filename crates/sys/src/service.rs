//! State notifications of a service to systemd (`sd_notify(3)`): one datagram to the socket that the environment names.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The manager's socket. Without one, nothing is sent.
#[derive(Debug)]
pub struct Manager {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often the manager expects a sign of life, at least. `None`: it does not watch.
    pub watchdog: Option<Duration>,
}

impl Manager {
    /// From `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    pub fn of_environment() -> Self {
        let var = |name: &str| std::env::var(name).ok();
        let here = var("WATCHDOG_PID").is_none_or(|p| p.parse() == Ok(std::process::id()));
        let watchdog = var("WATCHDOG_USEC").filter(|_| here).and_then(|t| t.parse().ok()).map(Duration::from_micros);
        Self { to: var("NOTIFY_SOCKET").and_then(|name| connect(&name).ok()), watchdog }
    }

    /// The start is complete.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// The configuration is being read again; [`Manager::ready`] ends it. `now`: the monotonic clock.
    pub fn reloading(&self, now: Duration) {
        self.send(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_micros()));
    }

    /// The process ends on its own.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// A sign of life.
    pub fn alive(&self) {
        if self.watchdog.is_some() {
            self.send("WATCHDOG=1");
        }
    }

    /// The line that `systemctl status` shows. It must be one line.
    pub fn status(&self, line: &str) {
        self.send(&format!("STATUS={}", line.replace('\n', " ")));
    }

    fn send(&self, text: &str) {
        if let Some((socket, to)) = &self.to {
            // A manager that does not listen is no reason to stop.
            let _ = socket.send_to_addr(text.as_bytes(), to);
        }
    }
}

fn connect(name: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let to = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_manager_receives() {
        let name = format!("ringwise-notify-{}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let m = Manager { to: connect(&format!("@{name}")).ok(), watchdog: Some(Duration::from_secs(30)) };
        m.ready();
        m.alive();
        m.status("keeps 3 interfaces\nsecond line");
        m.reloading(Duration::from_millis(1500));
        m.stopping();
        let mut buffer = [0; 200];
        let mut next = || {
            let n = manager.recv(&mut buffer).unwrap();
            String::from_utf8_lossy(&buffer[..n]).into_owned()
        };
        assert_eq!(next(), "READY=1");
        assert_eq!(next(), "WATCHDOG=1");
        assert_eq!(next(), "STATUS=keeps 3 interfaces second line");
        assert_eq!(next(), "RELOADING=1\nMONOTONIC_USEC=1500000");
        assert_eq!(next(), "STOPPING=1");
        // Without a manager nothing is sent, and nothing fails.
        Manager { to: None, watchdog: None }.ready();
    }
}
