use std::fs::TryLockError;
use std::io::Read;
use std::process::{Command, Stdio};

use super::*;

#[test]
fn a_descriptor_goes_over_and_shares_the_lock() {
    let path = std::env::temp_dir().join(format!("ringwise-lock-{}", std::process::id()));
    let file = File::create(&path).unwrap();
    file.try_lock().unwrap();
    let (a, b) = UnixStream::pair().unwrap();
    send_fd(&a, b"lock\n", file.as_fd()).unwrap();
    let mut text = [0; 64];
    let (n, fd) = recv_fd(&b, &mut text).unwrap();
    assert_eq!(&text[..n], b"lock\n");
    let got = File::from(fd.unwrap());
    // The sender's end of it is gone; the lock is not.
    drop(file);
    let other = File::open(&path).unwrap();
    assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
    drop(got);
    other.try_lock().unwrap();
    std::fs::remove_file(path).unwrap();
    let me = Peer { pid: Some(std::process::id()), uid: crate::proc::euid() };
    assert_eq!((peer(&a).unwrap(), peer(&b).unwrap()), (me, me));
    // A message without one, and the end.
    (&a).write_all(b"done\n").unwrap();
    assert!(matches!(recv_fd(&b, &mut text).unwrap(), (5, None)));
    drop(a);
    assert!(matches!(recv_fd(&b, &mut text).unwrap(), (0, None)));
}

#[test]
fn a_name_without_a_file() {
    let name = format!("ringwise-test-{}", std::process::id());
    let listener = listen(&name).unwrap();
    assert_eq!(listen(&name).unwrap_err().raw_os_error(), Some(libc::EADDRINUSE));
    let mut there = connect(&name).unwrap();
    let (mut here, _) = listener.accept().unwrap();
    there.write_all(b"x").unwrap();
    let mut b = [0];
    here.read_exact(&mut b).unwrap();
    drop(listener);
    assert_eq!(connect(&name).unwrap_err().raw_os_error(), Some(libc::ECONNREFUSED));
}

#[test]
fn the_end_of_a_process_is_seen() {
    let mut child = Command::new("/proc/self/exe").arg("--list").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap();
    let fd = pidfd(child.id()).unwrap();
    child.kill().unwrap();
    assert_eq!(readable(&[fd.as_fd()], Duration::from_secs(60)).unwrap(), [true]);
    // Not waited for yet: what is left of it is dead all the same.
    assert!(ended(child.id()));
    child.wait().unwrap();
    assert!(ended(child.id()) && !ended(std::process::id()));
    let (a, b) = UnixStream::pair().unwrap();
    assert_eq!(readable(&[b.as_fd()], Duration::ZERO).unwrap(), [false]);
    drop(a);
    assert_eq!(readable(&[b.as_fd()], Duration::ZERO).unwrap(), [true]);
}

#[test]
fn a_program_without_a_name_runs() {
    let mut file = memory_file("guard").unwrap();
    let mut me = File::open("/proc/self/exe").unwrap();
    io::copy(&mut me, &mut file).unwrap();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let out = Command::new(path).arg("--list").output().unwrap();
    assert!(String::from_utf8_lossy(&out.stdout).contains("a_program_without_a_name_runs"), "{out:?}");
}

#[test]
fn mount_options() {
    // /proc is mounted so wherever it is mounted by the book; what it says here is what mount says.
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let says = mounts.lines().rfind(|l| l.split(' ').nth(1) == Some("/proc")).unwrap().contains("noexec");
    assert_eq!(no_exec(Path::new("/proc")).unwrap(), says);
    assert_eq!(no_exec(Path::new("/nonesuch")).unwrap_err().raw_os_error(), Some(libc::ENOENT));
}

#[test]
fn places_in_control_groups() {
    let unified = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
    let session = "0::/user.slice/user-0.slice/session-3.scope\n";
    let found = group_of(unified, session).unwrap();
    assert_eq!(found, ("/sys/fs/cgroup".into(), "/user.slice/user-0.slice/session-3.scope"));
    let hybrid = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
                  cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n";
    let mine = "12:cpu:/x\n1:name=systemd:/user.slice/a\n0::/user.slice/b\n";
    assert_eq!(group_of(hybrid, mine).unwrap(), ("/sys/fs/cgroup/systemd".into(), "/user.slice/a"));
    assert_eq!(group_of("proc /proc proc rw 0 0\n", "0::/\n"), None);
    assert_eq!(group_of(unified, ""), None);
}

#[test]
fn a_time_of_our_own_is_no_namespace_of_init() {
    let proc = std::env::temp_dir().join(format!("ringwise-namespaces-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&proc);
    let link = |who: &str, kind: &str, id: u32| {
        let dir = proc.join(who).join("ns");
        std::fs::create_dir_all(&dir).unwrap();
        let _ = std::fs::remove_file(dir.join(kind));
        std::os::unix::fs::symlink(format!("{kind}:[{id}]"), dir.join(kind)).unwrap();
    };
    for who in ["1", "self"] {
        ["net", "mnt", "pid"].iter().for_each(|kind| link(who, kind, 7));
    }
    assert!(namespaces_below(&proc), "a kernel without time namespaces");
    link("self", "time", 8);
    assert!(!namespaces_below(&proc), "that of the first process is not known");
    link("1", "time", 8);
    assert!(namespaces_below(&proc));
    link("self", "time", 9);
    assert!(!namespaces_below(&proc), "its boot was at another time");
    std::fs::remove_dir_all(proc).unwrap();
}
