use super::*;

fn started(bounds: Bounds) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        serve(&listener, bounds, |form| match form {
            Form::Prometheus => PageResult::Page("plain 1\n".into()),
            Form::OpenMetrics => PageResult::Page("open 1\n# EOF\n".into()),
        })
    });
    at
}

fn ask(at: std::net::SocketAddr, request: &str) -> String {
    let mut s = TcpStream::connect(at).unwrap();
    s.write_all(request.as_bytes()).unwrap();
    let mut out = String::new();
    s.read_to_string(&mut out).unwrap();
    out
}

#[test]
fn requests_good_and_bad() {
    let at = started(Bounds::default());
    let get = |path: &str, more: &str| ask(at, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n"));
    let page = get("/metrics", "");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{page}");
    assert!(page.contains("Content-Length: 8\r\n") && page.ends_with("\r\n\r\nplain 1\n"), "{page}");
    let both = "Accept: application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\n";
    assert!(get("/metrics?x=1", both).ends_with("open 1\n# EOF\n"));
    assert!(get("/metrics", "accept: text/plain, application/openmetrics-text;q=0.2\r\n").ends_with("plain 1\n"));
    assert!(get("/metrics", "Accept: application/openmetrics-text;q=0\r\n").ends_with("plain 1\n"));
    assert!(get("/", "").starts_with("HTTP/1.1 200 "));
    assert!(get("/etc/passwd", "").starts_with("HTTP/1.1 404 "));
    let head = ask(at, "HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head.contains("Content-Length: 8\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let post = ask(at, "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("Allow: GET, HEAD\r\n"), "{post}");
    assert!(ask(at, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(ask(at, "GET / HTTP/2\r\n\r\n").starts_with("HTTP/1.1 505 "));
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(9000));
    assert!(ask(at, &long).starts_with("HTTP/1.1 431 "));
    // A client that disconnects without a request does not stop the server.
    drop(TcpStream::connect(at).unwrap());
    assert!(get("/metrics", "").ends_with("plain 1\n"));
}

fn get(at: std::net::SocketAddr) -> io::Result<String> {
    let mut s = TcpStream::connect(at)?;
    s.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
    let mut reply = String::new();
    s.read_to_string(&mut reply)?;
    Ok(reply)
}

#[test]
fn clients_that_send_nothing_block_no_other_client() {
    let at = started(Bounds { time: Duration::from_secs(60), ..Bounds::default() });
    let mut slow: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(at).unwrap()).collect();
    slow[0].write_all(b"GET /metrics").unwrap();
    for _ in 0..20 {
        assert!(get(at).unwrap().ends_with("plain 1\n"));
    }
    drop(slow);
}

#[test]
fn the_oldest_without_a_request_makes_room() {
    let at = started(Bounds { waiting: 2, time: Duration::from_secs(60), ..Bounds::default() });
    let mut slow: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(at).unwrap()).collect();
    assert!(get(at).unwrap().ends_with("plain 1\n"));
    let mut reply = String::new();
    // The connection is closed, with or without a reset.
    let _ = slow[0].read_to_string(&mut reply);
    assert_eq!(reply, "");
    slow[1].write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    slow[1].read_to_string(&mut reply).unwrap();
    assert!(reply.ends_with("plain 1\n"), "{reply:?}");
}

#[test]
fn a_client_that_sends_nothing_in_time_gets_an_error() {
    let at = started(Bounds { time: Duration::from_millis(300), ..Bounds::default() });
    let mut s = TcpStream::connect(at).unwrap();
    s.write_all(b"GET /metrics").unwrap();
    let mut reply = String::new();
    s.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 408 "), "{reply:?}");
}

#[test]
fn one_place_is_for_this_host_alone() {
    let taken = AtomicUsize::new(0);
    // Seven places for other hosts, and no eighth.
    let others: Vec<_> = (0..8).map_while(|_| Place::take(&taken, 7)).collect();
    assert_eq!(others.len(), 7);
    let mine = Place::take(&taken, 8);
    assert!(mine.is_some() && Place::take(&taken, 8).is_none());
    drop(others);
    drop(mine);
    assert_eq!(taken.load(Ordering::SeqCst), 0);
}
