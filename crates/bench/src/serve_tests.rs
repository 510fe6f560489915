//! Over 127.0.0.1.

use std::io::BufReader;
use std::net::UdpSocket;
use std::sync::mpsc;
use std::time::Instant;

use super::*;
use crate::remote::RemoteSide;
use crate::side::{Error, LoadGroup, LoadGroups, LostReason, PROTOCOL, Request, RequestRefusal, Responder, Side};
use crate::wire::{RequestLine, read_line, write_request};

const SOON: Duration = Duration::from_secs(20);

/// Serves while `client` runs. Returns the messages for people.
fn served(silent: Duration, secret: Option<&str>, client: impl FnOnce(SocketAddr)) -> Vec<String> {
    let stop = AtomicBool::new(false);
    let said = std::sync::Mutex::new(Vec::new());
    let (tell, at) = mpsc::channel();
    std::thread::scope(|scope| {
        let serve = scope.spawn(|| {
            let say = |line: &str| said.lock().unwrap().push(line.to_string());
            let mut opened = |at| tell.send(at).unwrap();
            serve_for(silent, "127.0.0.1:0".parse().unwrap(), secret, &Allowed::default(), &stop, &mut opened, &say)
        });
        client(at.recv().unwrap());
        stop.store(true, Ordering::Relaxed);
        serve.join().unwrap().unwrap();
    });
    said.into_inner().unwrap()
}

fn long_load(to: SocketAddr) -> Request {
    let group = LoadGroup { size_bytes: 64, threads: 1, to: vec![to], per_s: Some(1000.0), ..LoadGroup::default() };
    Request::Load(LoadGroups { groups: vec![group], time: Duration::from_secs(3000), ..LoadGroups::default() })
}

/// Waits until no more data arrives; fails after a while.
fn falls_silent(target: &UdpSocket) {
    target.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let begun = Instant::now();
    while target.recv(&mut [0; 2048]).is_ok() {
        assert!(begun.elapsed() < SOON, "it still sends");
    }
}

#[test]
fn a_test_over_the_stream() {
    served(SILENT, None, |at| {
        let mut side = RemoteSide::tcp(at, None).unwrap();
        assert_eq!((side.hello().protocol, side.name()), (PROTOCOL, at.to_string().as_str()));
        assert!(side.hello().interfaces.iter().any(|i| i.0 == "lo"));
        let busy = RemoteSide::tcp(at, None).err().unwrap().to_string();
        assert!(busy.contains("only one at a time"), "{busy}");
        let answer = Responder { bind: Some(at.ip()), threads: 1, ..Responder::default() };
        let Reply::Listening { at: to } = side.ask(Request::Answer(answer), SOON).unwrap() else { panic!() };
        let group = LoadGroup { size_bytes: 64, threads: 1, to, ..LoadGroup::default() };
        let load = LoadGroups { groups: vec![group], time: Duration::from_millis(50), ..LoadGroups::default() };
        let mut here = crate::local::LocalSide::new("here");
        let Reply::Loaded(r) = here.ask(Request::Load(load), SOON).unwrap() else { panic!() };
        assert!(r[0].done_per_s > 0.0);
        let Reply::Stopped { taken } = side.ask(Request::Stop, SOON).unwrap() else { panic!() };
        assert!(taken[0].packets > 0);
        let refused = side.ask(Request::Count { devs: vec!["no-such-dev".into()] }, SOON).unwrap_err();
        assert!(
            matches!(&refused, Error::Refused { why: RequestRefusal::Peer(_), .. })
                && refused.to_string().contains("ENODEV"),
            "{refused}"
        );
    });
}

#[test]
fn a_client_that_is_gone_leaves_nothing_running() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    let said = served(SILENT, None, |at| {
        let mut side = RemoteSide::tcp(at, None).unwrap();
        side.start(long_load(target.local_addr().unwrap())).unwrap();
        target.recv(&mut [0; 2048]).unwrap();
        drop(side);
        falls_silent(&target);
        // The next client is accepted.
        let begun = Instant::now();
        while let Err(e) = RemoteSide::tcp(at, None) {
            assert!(begun.elapsed() < SOON, "{e}");
        }
    });
    assert!(said[1].contains("everything is stopped"), "{said:?}");
}

#[test]
fn a_client_without_a_word_is_gone_too() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    let said = served(Duration::from_millis(300), None, |at| {
        // A plain connection, which sends no sign of life.
        let mut stream = TcpStream::connect(at).unwrap();
        let hello = Request::Hello { protocol: PROTOCOL, ringwise: "test".into(), nonce: None };
        write_request(&mut stream, &RequestLine { id: 1, request: Some(hello) }).unwrap();
        let load = long_load(target.local_addr().unwrap());
        write_request(&mut stream, &RequestLine { id: 2, request: Some(load) }).unwrap();
        target.recv(&mut [0; 2048]).unwrap();
        falls_silent(&target);
    });
    assert!(said[1].contains("was silent for"), "{said:?}");
}

/// The result of `try_it` after the previous client is gone.
fn in_turn(try_it: impl Fn() -> String) -> String {
    let begun = Instant::now();
    loop {
        let said = try_it();
        if !said.contains("only one at a time") || begun.elapsed() > SOON {
            return said;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn strangers_are_refused_with_words() {
    served(SILENT, Some("open sesame"), |at| {
        for (secret, words) in [
            (None, "a secret is needed"),
            (Some("open"), "the secret is wrong"),
            (Some("open sesamE"), "the secret is wrong"),
            (Some("open sesame"), "welcome"),
        ] {
            let said = in_turn(|| RemoteSide::tcp(at, secret).map_or_else(|e| e.to_string(), |_| "welcome".into()));
            assert!(said.contains(words), "{said}");
        }
    });
    served(SILENT, None, |at| {
        for (line, words) in [
            ("{\"id\":1,\"request\":\"stop\"}\n", "must be a hello"),
            ("GET / HTTP/1.1\n", "not understood"),
            (
                "{\"id\":1,\"request\":{\"hello\":{\"protocol\":99,\"ringwise\":\"9.9\",\"nonce\":null}}}\n",
                "\"protocol\":2",
            ),
        ] {
            let said = in_turn(|| {
                let mut stream = TcpStream::connect(at).unwrap();
                // A client that is refused early may find the stream closed.
                let _ = stream.write_all(line.as_bytes());
                let mut text = String::new();
                let _ = stream.read_to_string(&mut text);
                text
            });
            assert!(said.contains(words), "{said}");
        }
    });
}

#[test]
fn another_version_at_the_other_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_line(&mut BufReader::new(stream.try_clone().unwrap())).unwrap();
        let hello = crate::side::Hello { protocol: 7, ringwise: "3.2.1".into(), ..Default::default() };
        write_reply(&mut stream, &ReplyLine { id: 1, reply: Reply::Hello(hello) }).unwrap();
    });
    let e = RemoteSide::tcp(at, None).err().unwrap();
    assert!(matches!(e, Error::Versions { theirs: 7, .. }) && e.to_string().contains("3.2.1"), "{e}");
    other.join().unwrap();
    let gone = RemoteSide::tcp(at, None).err().unwrap().to_string();
    assert!(gone.contains("ECONNREFUSED"), "{gone}");
}

#[test]
fn a_child_that_dies_leaves_its_words() {
    let mut sh = std::process::Command::new("/bin/sh");
    sh.args(["-c", "echo 'Host key verification failed.' >&2; exit 255"]);
    let e = RemoteSide::child(sh, "ssh b").err().unwrap().to_string();
    assert!(e.starts_with("ssh b: the control connection is gone") && e.contains("Host key"), "{e}");
    let e = RemoteSide::child(std::process::Command::new("/no/such"), "x").err().unwrap().to_string();
    assert!(e.contains("ENOENT"), "{e}");
}

#[test]
fn serving_on_every_address_is_refused() {
    let e =
        serve("0.0.0.0:0".parse().unwrap(), None, &Allowed::default(), &AtomicBool::new(false), &mut |_| {}, &|_| {})
            .unwrap_err();
    assert!(e.to_string().contains("every address"), "{e}");
}

#[test]
fn an_address_of_other_hosts_needs_a_secret() {
    let at = "192.0.2.1:0".parse().unwrap();
    let e = serve(at, None, &Allowed::default(), &AtomicBool::new(false), &mut |_| {}, &|_| {}).unwrap_err();
    assert!(e.to_string().contains("without a secret"), "{e}");
}

#[test]
fn a_client_with_a_secret_does_not_trust_a_server_without_one() {
    served(SILENT, None, |at| {
        let e = RemoteSide::tcp(at, Some("open sesame")).err().unwrap();
        assert!(matches!(e, Error::Refused { why: RequestRefusal::NoSecret, .. }), "{e}");
    });
}

#[test]
fn the_place_is_free_while_strangers_wait() {
    served(SILENT, None, |at| {
        let strangers: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(at).unwrap()).collect();
        assert!(RemoteSide::tcp(at, None).is_ok());
        drop(strangers);
    });
}

#[test]
fn a_target_that_was_not_allowed_gets_no_packet() {
    let target = UdpSocket::bind("127.0.0.2:0").unwrap();
    served(SILENT, None, |at| {
        let mut side = RemoteSide::tcp(at, None).unwrap();
        let e = side.ask(long_load(target.local_addr().unwrap()), SOON).unwrap_err();
        assert!(matches!(&e, Error::Refused { .. }) && e.to_string().contains("--allow-target 127.0.0.2"), "{e}");
    });
    target.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(target.recv(&mut [0; 2048]).is_err());
}

/// Requests that wait behind a lost connection are not begun, and the load before them ends.
#[test]
fn a_lost_connection_counts_more_than_what_is_queued() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    served(SILENT, None, |at| {
        let mut stream = TcpStream::connect(at).unwrap();
        let hello = Request::Hello { protocol: PROTOCOL, ringwise: "test".into(), nonce: None };
        write_request(&mut stream, &RequestLine { id: 1, request: Some(hello) }).unwrap();
        for id in 2..20 {
            let request = if id % 2 == 0 { long_load(target.local_addr().unwrap()) } else { Request::Stop };
            write_request(&mut stream, &RequestLine { id, request: Some(request) }).unwrap();
        }
        drop(stream);
        falls_silent(&target);
    });
}

#[test]
fn a_peer_does_not_say_where_the_load_goes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let hello = crate::side::Hello { protocol: PROTOCOL, ..Default::default() };
        for reply in [Reply::Hello(hello), Reply::Listening { at: vec!["198.51.100.9:9".parse().unwrap()] }] {
            let asked: RequestLine = serde_json::from_str(&read_line(&mut lines).unwrap().unwrap()).unwrap();
            write_reply(&mut stream, &ReplyLine { id: asked.id, reply }).unwrap();
        }
    });
    let mut side = RemoteSide::tcp(at, None).unwrap();
    let answer = Responder { bind: Some(at.ip()), threads: 1, ..Responder::default() };
    let e = side.ask(Request::Answer(answer), SOON).unwrap_err();
    assert!(
        matches!(&e, Error::Lost { why: LostReason::ForeignAddress(_), .. }) && e.to_string().contains("198.51.100.9"),
        "{e}"
    );
    drop(side);
    other.join().unwrap();
}

/// The name of a peer and its error texts cannot control the terminal or begin a line.
#[test]
fn the_words_of_a_peer_are_written_out() {
    let refused =
        Error::Refused { side: "b".into(), why: RequestRefusal::Peer("no\n\u{1b}[2Jringwise: all is well".into()) };
    assert_eq!(refused.to_string(), "b: no\\x0a\\x1b[2Jringwise: all is well");
    let error = serde_json::from_str::<ReplyLine>("{\"id\":1,\"reply\":{\"\\u001b[2J\":1}}").unwrap_err();
    let lost = LostReason::NotAReply { error: error.into(), line: "\u{1b}[2J".into() };
    let lost = Error::Lost { side: "b".into(), why: lost, stderr: "first\n\u{1b}second\n".into() };
    let text = lost.to_string();
    assert!(!text.contains('\u{1b}') && text.ends_with("; its error output: first\n    \\x1bsecond"), "{text:?}");
    let other = SessionEnd::OtherProtocol { protocol: 9, ringwise: "1\n2".into() };
    assert_eq!(other.to_string(), "the client uses protocol 9 (ringwise 1\\x0a2)");
}
