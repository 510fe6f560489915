use super::*;

fn started(bounds: Bounds) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        serve(&listener, bounds, |form| match form {
            Form::Prometheus => Answer::Page("plain 1\n".into()),
            Form::OpenMetrics => Answer::Page("open 1\n# EOF\n".into()),
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
    // Gone before it said anything: the next is served all the same.
    drop(TcpStream::connect(at).unwrap());
    assert!(get("/metrics", "").ends_with("plain 1\n"));
}

#[test]
fn slow_and_many_clients_do_not_keep_others_out() {
    let bounds = Bounds { connections: 2, time: Duration::from_millis(300), ..Bounds::default() };
    let at = started(bounds);
    let mut slow: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(at).unwrap()).collect();
    slow[0].write_all(b"GET /metrics").unwrap();
    // The third is told so, unless the first two are over by then.
    let mut third = TcpStream::connect(at).unwrap();
    let mut said = String::new();
    let _ = third.read_to_string(&mut said);
    assert!(said.starts_with("HTTP/1.1 503 ") || said.starts_with("HTTP/1.1 408 "), "{said:?}");
    for s in &mut slow {
        let mut said = String::new();
        s.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 408 "), "{said:?}");
    }
    // A slot is free again as soon as a client's thread has ended; who comes before that may be cut off.
    let served = || -> io::Result<bool> {
        let mut s = TcpStream::connect(at)?;
        s.write_all(b"GET /metrics HTTP/1.1\r\n\r\n")?;
        let mut said = String::new();
        s.read_to_string(&mut said)?;
        Ok(said.ends_with("plain 1\n"))
    };
    assert!((0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        served().unwrap_or(false)
    }));
}
