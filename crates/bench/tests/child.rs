//! An end of a test as a child of this program, which is both ends. There is no test harness, because its output would
//! be mixed with the protocol.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ringwise_bench::local::LocalSide;
use ringwise_bench::remote::RemoteSide;
use ringwise_bench::serve::serve_stdio;
use ringwise_bench::side::{LoadGroup, LoadGroups, Reply, Request, Responder, Side};

const SOON: Duration = Duration::from_secs(20);

fn child(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(args);
    command
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    if let ["serve", netns @ ..] = args.as_slice() {
        if let Err(why) = serve_stdio(netns.first().copied(), &AtomicBool::new(false)) {
            eprintln!("{why}");
            std::process::exit(1);
        }
        return;
    }
    let mut far = RemoteSide::child(child(&["serve"]), "child").unwrap();
    assert!(far.hello().interfaces.iter().any(|i| i.0 == "lo"));
    let answer = Responder { bind: Some("127.0.0.1".parse().unwrap()), threads: 1, ..Responder::default() };
    let Reply::Listening { at } = far.ask(Request::Answer(answer), SOON).unwrap() else { panic!() };
    let group = LoadGroup { size_bytes: 64, threads: 1, to: at, ..LoadGroup::default() };
    let load = LoadGroups { groups: vec![group], time: Duration::from_millis(50), ..LoadGroups::default() };
    let mut here = LocalSide::new("here");
    let Reply::Loaded(results) = here.ask(Request::Load(load.clone()), SOON).unwrap() else { panic!() };
    assert!(results[0].done_per_s > 0.0);
    drop(far);
    // The child is gone, and with it the thread that answered.
    let why = here.ask(Request::Load(load), SOON).unwrap_err().to_string();
    assert!(why.contains("ECONNREFUSED"), "{why}");

    let why = RemoteSide::child(child(&["serve", "no-such-namespace"]), "child").err().unwrap().to_string();
    assert!(why.contains("/run/netns/no-such-namespace") && why.contains("ENOENT"), "{why}");
    // Several lines as from ssh, none of which looks like a line of the protocol.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "printf 'Warning: banner\\nOK: all is \\twell\\n' >&2; exit 1"]);
    let why = RemoteSide::child(shell, "child").err().unwrap().to_string();
    assert!(why.ends_with("its error output: Warning: banner\n    OK: all is \\x09well"), "{why}");
    println!("a child serves, ends with us, and leaves its words");
}
