use std::fs::TryLockError;
use std::process::{Command, Stdio};

use super::*;

#[test]
fn descriptors_go_over_and_share_the_lock() {
    let path = std::env::temp_dir().join(format!("ringwise-lock-{}", std::process::id()));
    let file = File::create(&path).unwrap();
    file.try_lock().unwrap();
    let (a, b) = UnixStream::pair().unwrap();
    send_fds(&a, b"lock\n", &[file.as_fd(), a.as_fd()]).unwrap();
    let mut text = [0; 64];
    let (n, mut fds) = recv_fds(&b, &mut text).unwrap();
    assert_eq!((&text[..n], fds.len()), (&b"lock\n"[..], 2));
    let got = File::from(fds.remove(0));
    drop(fds);
    // The sender's copy is closed; the lock is still held.
    drop(file);
    let other = File::open(&path).unwrap();
    assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
    drop(got);
    other.try_lock().unwrap();
    std::fs::remove_file(path).unwrap();
    let me = Peer { pid: Some(std::process::id()), uid: crate::proc::euid() };
    assert_eq!((peer(&a).unwrap(), peer(&b).unwrap()), (me, me));
    // A message without a descriptor, and the end.
    (&a).write_all(b"done\n").unwrap();
    assert!(matches!(recv_fds(&b, &mut text).unwrap(), (5, fds) if fds.is_empty()));
    drop(a);
    assert!(matches!(recv_fds(&b, &mut text).unwrap(), (0, fds) if fds.is_empty()));
    assert!(send_fds(&b, b"x", &[]).is_err());
}

#[test]
fn the_end_of_a_process_is_seen() {
    let mut child = Command::new("/proc/self/exe").arg("--list").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().unwrap();
    let fd = pidfd(child.id()).unwrap();
    child.kill().unwrap();
    assert_eq!(readable(&[fd.as_fd()], Duration::from_secs(60)).unwrap(), [true]);
    // The process is not reaped yet, but it counts as ended.
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
    // /proc is usually mounted with these options; the test compares with what /proc/self/mounts reports.
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
fn the_same_directory_below_another_root() {
    let dir = std::env::temp_dir().join(format!("ringwise-root-{}", std::process::id()));
    let dir = { std::fs::create_dir_all(&dir).map(|()| dir.canonicalize().unwrap()).unwrap() };
    assert!(same_place(Path::new("/proc/self/root"), &dir));
    // A directory with the same name, empty too, as in a container.
    let below = dir.join("container").join(dir.strip_prefix("/").unwrap());
    std::fs::create_dir_all(&below).unwrap();
    assert!(!same_place(&dir.join("container"), &dir));
    assert!(!same_place(&dir.join("none"), &dir) && !same_place(Path::new("/"), Path::new("relative")));
    std::fs::remove_dir_all(&dir).unwrap();
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
    assert!(shared_below(&proc, Path::new("/")), "a kernel without time namespaces");
    link("self", "time", 8);
    assert!(!shared_below(&proc, Path::new("/")), "that of the first process is not known");
    link("1", "time", 8);
    assert!(shared_below(&proc, Path::new("/")));
    link("self", "time", 9);
    assert!(!shared_below(&proc, Path::new("/")), "its boot was at another time");
    std::fs::remove_dir_all(proc).unwrap();
}
