//! Recording, writing and reading back; foreign trees; hostile and broken archives.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use ringwise_sys::{CaptureRecorder, Captured, Clock, Host, IoctlCmd, Real, Recording, Request, captures};

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("ringwise-capture-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn link(&self, name: &str, target: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn tar_of(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, kind, body) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        // Written directly, because append_data would refuse `..`.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_size(0);
            header.as_old_mut().linkname[..body.len()].copy_from_slice(body);
            header.set_cksum();
            tar.append(&header, &[][..]).unwrap();
        } else {
            header.set_size(body.len() as u64);
            header.set_cksum();
            tar.append(&header, *body).unwrap();
        }
    }
    tar.into_inner().unwrap()
}

const FILE: tar::EntryType = tar::EntryType::Regular;
const LINK: tar::EntryType = tar::EntryType::Symlink;

fn drvinfo() -> Request {
    Request::Ioctl { cmd: IoctlCmd::DrvinfoGet, dev: "lo".into(), payload: vec![0; 196] }
}

fn record_live() -> Recording {
    let recorder = CaptureRecorder::new(Real::new().unwrap());
    assert!(!recorder.read("/proc/interrupts").unwrap().is_empty());
    recorder.list("/sys/class/net").unwrap();
    recorder.readlink("/sys/class/net/lo").unwrap();
    recorder.read("/sys/class/net/lo/mtu").unwrap();
    assert_eq!(recorder.read("/proc/nonesuch").unwrap_err().errno, Some(2));
    recorder.kernel(&Request::Links).unwrap();
    let _ = recorder.kernel(&drvinfo());
    assert!(recorder.write("/proc/sys/net/core/rps_sock_flow_entries", b"0").unwrap_err().errno.is_none());
    recorder.finish()
}

#[test]
fn what_was_recorded_is_replayed_from_every_form() {
    let dir = Dir::new("forms");
    let recording = record_live();
    let forms = [dir.0.join("a.tar"), dir.0.join("a.tar.gz"), dir.0.join("plain")];
    recording.write_tar(&forms[0]).unwrap();
    recording.write_tar(&forms[1]).unwrap();
    recording.write_dir(&forms[2]).unwrap();
    assert!(fs::read(&forms[1]).unwrap().starts_with(b"\x1f\x8b"));
    for form in &forms {
        let host = Captured::open(form).unwrap();
        assert!(host.is_recorded() && !host.is_foreign());
        assert_eq!(&host.read("/proc/interrupts").unwrap(), recording.files["/proc/interrupts"].as_ref().unwrap());
        assert!(host.list("/sys/class/net").unwrap().contains(&"lo".to_string()));
        assert!(host.readlink("/sys/class/net/lo").unwrap().ends_with("/net/lo"));
        // absent when recorded: the errno from then; never read: unknown
        assert_eq!(host.read("/proc/nonesuch").unwrap_err().errno, Some(2));
        let unknown = host.read("/proc/stat").unwrap_err();
        assert_eq!((unknown.errno, unknown.is_absent()), (None, false));
        assert!(unknown.to_string().contains("not in this capture"), "{unknown}");
        assert!(!host.kernel(&Request::Links).unwrap().is_empty());
        assert_eq!(host.kernel(&Request::Addrs).unwrap_err().errno, None);
        assert_eq!(
            host.kernel(&drvinfo()).is_ok(),
            recording.kernel.values().any(|r| r.name == "ETHTOOL_GDRVINFO" && r.answer.is_ok())
        );
        assert!(host.write("/sys/x", b"1").unwrap_err().to_string().contains("this host is a recording"));
        let set = Request::EthtoolSet { cmd: 18, name: "channels-set", dev: "lo".into(), attrs: vec![] };
        assert!(host.kernel(&set).unwrap_err().to_string().contains("this host is a recording"));
        assert_eq!(host.unix_time(), recording.info.unix_time);
        assert_eq!(host.info().tool.as_deref(), Some(env!("CARGO_PKG_VERSION")));
        assert_eq!(
            host.info().kernel.as_deref(),
            Some(Real::new().unwrap().read_text("/proc/sys/kernel/osrelease").unwrap().as_str())
        );
    }
}

#[test]
fn the_same_recording_gives_the_same_bytes() {
    let recording = record_live();
    let bytes = |gzip| {
        let mut out = Vec::new();
        recording.write_to(&mut out, gzip).unwrap();
        out
    };
    assert_eq!(bytes(true), bytes(true));
    assert_eq!(bytes(false), bytes(false));
}

#[test]
fn the_first_of_two_contents_is_kept_and_threads_may_ask() {
    let dir = Dir::new("twice");
    dir.file("proc/a", b"1");
    let recorder = CaptureRecorder::new(Real::with_root(&dir.0).unwrap());
    recorder.read("/proc/a").unwrap();
    dir.file("proc/a", b"2");
    assert_eq!(recorder.read("/proc/a").unwrap(), b"2");
    std::thread::scope(|s| {
        for i in 0..8 {
            let recorder = &recorder;
            s.spawn(move || recorder.read(&format!("/proc/{i}")).unwrap_err());
        }
    });
    let recording = recorder.finish();
    assert_eq!(recording.files["/proc/a"], Ok(b"1".to_vec()));
    assert_eq!(recording.files.len(), 10);
}

#[test]
fn our_links_lead_to_what_was_read_elsewhere() {
    let mut r = Recording::default();
    r.links.insert("/sys/class/net/eth1".into(), Ok("../../devices/p/d/net/eth1".into()));
    r.links.insert("/sys/class/net/eth1/device".into(), Ok("../../../d".into()));
    r.files.insert("/sys/devices/p/d/numa_node".into(), Ok(b"1\n".to_vec()));
    let host = Captured::from(r);
    assert_eq!(host.read("/sys/class/net/eth1/device/numa_node").unwrap(), b"1\n");
}

fn foreign(dir: &Dir, below: &str) {
    dir.file(&format!("{below}proc/interrupts"), b"  CPU0\n");
    dir.file(&format!("{below}proc/uptime"), b"100.5 1.0\n");
    dir.file(&format!("{below}proc/stat"), b"cpu 1\nbtime 1700000000\n");
    dir.file(&format!("{below}sys/devices/pci0/0000:03:00.0/numa_node"), b"1\n");
    dir.file(&format!("{below}sys/devices/pci0/0000:03:00.0/net/eth1/mtu"), b"1500\n");
    dir.link(&format!("{below}sys/devices/pci0/0000:03:00.0/net/eth1/device"), "../../../0000:03:00.0");
    dir.link(&format!("{below}sys/class/net/eth1"), "../../devices/pci0/0000:03:00.0/net/eth1");
    dir.link(&format!("{below}sys/class/net/out"), "../../../../../../../../../../etc/passwd");
    dir.link(&format!("{below}sys/class/net/abs"), "/etc/passwd");
    dir.link(&format!("{below}sys/class/net/loop"), "loop");
    dir.file(&format!("{below}var/log/messages"), b"text");
}

fn check_foreign(path: &Path) {
    let host = Captured::open(path).unwrap();
    assert!(host.is_foreign());
    assert_eq!(host.read("/sys/class/net/eth1/device/numa_node").unwrap(), b"1\n");
    assert_eq!(host.readlink("/sys/class/net/eth1/device").unwrap(), "../../../0000:03:00.0");
    let mut names = host.list("/sys/class/net").unwrap();
    names.sort();
    assert_eq!(names, ["abs", "eth1", "loop", "out"]);
    for hostile in ["out", "abs", "loop"] {
        let error = host.read(&format!("/sys/class/net/{hostile}")).unwrap_err();
        assert_eq!(error.errno, None, "{error}");
    }
    assert_eq!(host.read("/proc/meminfo").unwrap_err().errno, None);
    assert!(!host.read("/proc/meminfo").unwrap_err().is_absent());
    assert_eq!(host.read("/../../../../etc/passwd").unwrap_err().errno, None);
    assert_eq!((host.unix_time(), host.since_boot().as_secs()), (1_700_000_100, 100));
    assert_eq!(host.kernel(&Request::Links).unwrap_err().errno, None);
}

#[test]
fn foreign_trees_as_directory_and_archive_at_any_depth() {
    for (name, below) in [("top", ""), ("one", "sosreport-web1/"), ("two", "a/b/")] {
        let dir = Dir::new(name);
        foreign(&dir, below);
        check_foreign(&dir.0);
        let archive = Dir::new(&format!("{name}-tar"));
        let mut tar = tar::Builder::new(Vec::new());
        tar.follow_symlinks(false);
        tar.append_dir_all("./", &dir.0).unwrap();
        let path = archive.file("host.tar", &tar.into_inner().unwrap());
        check_foreign(&path);
    }
}

#[test]
fn a_hand_made_tree_may_bring_kernel_replies() {
    let dir = Dir::new("hand");
    dir.file("fs/proc/interrupts", b"x");
    dir.file(
        "kernel.json",
        br#"[{"kind":"ethtool-get","cmd":17,"name":"channels-get","dev":"eth1","reply":["0a0b"]},
        {"kind":"ethtool-get","cmd":15,"name":"rings-get","dev":"eth1","errno":95}]"#,
    );
    let host = Captured::open(&dir.0).unwrap();
    let get = |cmd, name| host.kernel(&Request::EthtoolGet { cmd, name, dev: "eth1".into() });
    assert_eq!(get(17, "channels-get").unwrap(), [vec![10, 11]]);
    assert_eq!(get(15, "rings-get").unwrap_err().errno, Some(95));
}

#[test]
fn bad_archives_say_what_is_wrong() {
    let dir = Dir::new("bad");
    let says = |name: &str, bytes: &[u8], words: &str| {
        let path = dir.file(name, bytes);
        let text = Captured::open(&path).unwrap_err().to_string();
        assert!(text.contains(words) && text.contains(name), "{name}: {text}");
    };
    says("empty.tar", b"", "empty");
    says("text.tar", &b"this is no archive at all, but some words. ".repeat(40), "not a tar archive");
    says("host.tar.xz", b"\xfd7zXZ\0....", "damaged at its beginning");
    says("other.tar", &tar_of(&[("home/me/notes", FILE, b"hello")]), "neither a ringwise capture nor");
    let report = ["basic-environment.txt", "supportconfig.txt", "network.txt"];
    for below in ["", "scc_edge7_261120_1030/"] {
        let names = report.map(|name| format!("{below}{name}"));
        let entries: Vec<_> = names.iter().map(|name| (name.as_str(), FILE, &b"#==[ Command ]\n"[..])).collect();
        says("scc_edge7.tar", &tar_of(&entries), "a report of supportconfig");
        says("one.tar", &tar_of(&entries[1..]), "neither a ringwise capture nor");
    }
    let good = tar_of(&[("proc/interrupts", FILE, &[b'x'; 3000]), ("proc/stat", FILE, &[b'y'; 3000])]);
    for cut in [100, 512, 2000, 4000, 5000, good.len() - 1024] {
        says(&format!("cut{cut}.tar"), &good[..cut], "");
    }
    says("cut.tar", &good[..2000], "cut short");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&good).unwrap();
    let packed = packed.finish().unwrap();
    says("cut.tar.gz", &packed[..packed.len() - 6], "cut short");
    says(
        "two.tar",
        &tar_of(&[("a/proc/interrupts", FILE, b"x"), ("b/proc/interrupts", FILE, b"x")]),
        "more than one host",
    );
    let gone = Captured::open(&dir.0.join("nonesuch")).unwrap_err();
    assert_eq!(gone.errno, Some(2));
    let newer = br#"{"format":"ringwise.capture","version":9}"#;
    says("newer.tar", &tar_of(&[("manifest.json", FILE, newer), ("fs/proc/x", FILE, b"")]), "version 9");
    let lacks = br#"{"format":"ringwise.capture","version":1,"attempted":[{"kind":"file","path":"/proc/x","size":1}]}"#;
    says("lacks.tar", &tar_of(&[("manifest.json", FILE, lacks)]), "the manifest lists /proc/x");
    let out = br#"{"format":"ringwise.capture","version":1,"attempted":[{"kind":"file","path":"/../../etc/passwd","size":1}]}"#;
    says("out.tar", &tar_of(&[("manifest.json", FILE, out)]), "not an absolute path");
}

#[test]
fn hostile_names_and_links() {
    let dir = Dir::new("hostile");
    let bytes = tar_of(&[
        ("proc/interrupts", FILE, b"ok"),
        ("../../proc/version", FILE, b"evil"),
        ("/proc/cpuinfo", FILE, b"absolute"),
        ("proc/hard", tar::EntryType::Link, b"proc/interrupts"),
        ("proc/hard2", tar::EntryType::Link, b"../../etc/passwd"),
        ("proc/self", LINK, b"/proc/interrupts"),
        ("proc/fifo", tar::EntryType::Fifo, b""),
        ("proc/interrupts/below", FILE, b"x"),
    ]);
    let host = Captured::open(&dir.file("h.tar", &bytes)).unwrap();
    assert_eq!(host.read("/proc/version").unwrap_err().errno, None);
    assert_eq!(host.read("/proc/cpuinfo").unwrap(), b"absolute");
    assert_eq!(host.read("/proc/hard").unwrap(), b"ok");
    assert_eq!(host.read("/proc/self").unwrap(), b"ok");
    for gone in ["/proc/hard2", "/proc/fifo"] {
        assert_eq!(host.read(gone).unwrap_err().errno, None);
    }
}

#[test]
fn a_fifo_in_a_directory_does_not_hang() {
    let dir = Dir::new("fifo");
    dir.file("proc/interrupts", b"x");
    let path = dir.0.join("proc/stat");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let host = Captured::open(&dir.0).unwrap();
    assert_eq!(host.read("/proc/stat").unwrap_err().errno, None);
}

/// In a thread of its own: a reader that waits for a writer would never return.
fn open_soon(path: PathBuf) -> Option<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(Captured::open(&path).map(|_| ()).map_err(|e| e.to_string())));
    receiver.recv_timeout(std::time::Duration::from_secs(10)).ok()?.err()
}

#[test]
fn a_fifo_or_a_device_is_refused() {
    let dir = Dir::new("special");
    let path = dir.0.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let error = open_soon(path).expect("refused, not waited for");
    assert!(error.contains("pipe: found a named pipe, expected a file or a directory"), "{error}");
    let error = open_soon("/dev/zero".into()).expect("refused");
    assert!(error.contains("found a character device"), "{error}");
}

/// For `--from <(zcat …)` the shell opens an anonymous pipe, which has a writer.
#[test]
fn an_open_pipe_is_read() {
    let dir = Dir::new("open-pipe");
    let bytes = tar_of(&[("proc/interrupts", FILE, b"  CPU0\n")]);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&bytes));
    use std::os::fd::AsRawFd;
    let host = Captured::open(Path::new(&format!("/dev/fd/{}", reader.as_raw_fd()))).unwrap();
    writing.join().unwrap().unwrap();
    assert_eq!(host.read("/proc/interrupts").unwrap(), b"  CPU0\n");
    drop(dir);
}

/// If the user names the wrong file, its content must not appear in a log.
#[test]
fn an_error_does_not_print_the_file() {
    let dir = Dir::new("secret");
    let passwd =
        b"root:x:0:0:root:/root:/bin/bash\ndaemon:$6$secret:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n".repeat(40);
    for at in 0..64 {
        let error = Captured::open(&dir.file("some", &passwd[at..])).unwrap_err().to_string();
        assert!(error.contains("not a tar archive"), "{error}");
        for word in ["root", "secret", "bash", "usr", "daemon"] {
            assert!(!error.replace(&dir.0.display().to_string(), "").contains(word), "{error}");
        }
    }
}

#[test]
fn a_nested_report_is_named_and_several_are_refused() {
    let dir = Dir::new("nested");
    foreign(&dir, "web1/");
    let host = Captured::open(&dir.0).unwrap();
    assert_eq!(host.nested(), Some("web1"));
    assert_eq!(Captured::open(&dir.0.join("web1")).unwrap().nested(), None);
    // A capture of ringwise at another depth.
    let refuses = |names: &[&str]| {
        let error = Captured::open(&dir.0).unwrap_err().to_string();
        assert!(error.contains(&format!("more than one host: {}", names.join(", "))), "{error}");
    };
    foreign(&dir, "old/web2/");
    refuses(&["web1", "old/web2"]);
    fs::remove_dir_all(dir.0.join("web1")).unwrap();
    assert_eq!(Captured::open(&dir.0).unwrap().nested(), Some("old/web2"));
    fs::remove_dir_all(dir.0.join("old")).unwrap();
    record_live().write_dir(&dir.0.join("a")).unwrap();
    assert_eq!(Captured::open(&dir.0).unwrap().nested(), Some("a"));
    record_live().write_dir(&dir.0.join("b")).unwrap();
    refuses(&["a", "b"]);
}

/// A tar of a report's shape, packed by liblzma (preset 6, CRC-64).
const XZ: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a3e027ff010f5d00399bcacdf391087f80397433483286deae\
    e40ac641445376340d1c114a6e36599f66ff7db263592eecaef59703185fde81234c66420184a71c01e7f760963ce10b\
    f34852b7dbcd144fb6eb000365873bbe0bf920fc4677457ff01be716f61f8f818a5bb3f9672243627d29c603b89911b0\
    c4dd623610d3e9eb00b4a2dddde195aa6d9de147c2850a62d636e85b024b488c478632d65c188125b6ae670160387d0b\
    781f4fbba57d218bf988b6a61d24ba062792982f080c55f931d74d0519e4f988dbf93a2ed0621d5768a3017868c34af8\
    6b55308a1760b4c46cb27fff89785c3c32c032cf1d8df19cb83b8eabcec6f178e7df84c510136cfa72bcca923463c26f\
    bb93e74fc42e60ba336e66c500000000b4c6c21e34590ec60001ab02805000001bfeab4bb1c467fb020000000004595a";

#[test]
fn xz_is_unpacked_and_checked() {
    let bytes: Vec<u8> = (0..XZ.len()).step_by(2).map(|i| u8::from_str_radix(&XZ[i..i + 2], 16).unwrap()).collect();
    let dir = Dir::new("xz");
    let host = Captured::open(&dir.file("sos.tar.xz", &bytes)).unwrap();
    assert!(host.is_foreign());
    assert_eq!(host.read("/proc/interrupts").unwrap(), b"  CPU0\n");
    assert_eq!(host.read("/version.txt").unwrap(), b"sosreport: 4.8.2\n");
    // The output of useful commands, and nothing else.
    assert_eq!(host.list("/sos_commands").unwrap(), ["networking"]);
    assert!(host.read("/var/log/messages").is_err());
    for cut in (0..bytes.len()).step_by(7).filter(|n| *n > 6) {
        assert!(Captured::open(&dir.file("cut.tar.xz", &bytes[..cut])).is_err(), "{cut}");
    }
    for at in (8..bytes.len()).step_by(5) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(Captured::open(&dir.file("changed.tar.xz", &changed)).is_err(), "byte {at}");
    }
    // A window of 1.5 GB is never allocated.
    let mut hungry = bytes.clone();
    let header = 12 + (usize::from(bytes[12]) + 1) * 4 - 4;
    assert_eq!(&hungry[14..16], [0x21, 0x01], "LZMA2 with one byte of properties");
    hungry[16] = 37;
    let crc = hungry[12..header].iter().fold(!0u32, |mut c, b| {
        c ^= u32::from(*b);
        (0..8).for_each(|_| c = if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 });
        c
    });
    hungry[header..header + 4].copy_from_slice(&(!crc).to_le_bytes());
    assert!(Captured::open(&dir.file("hungry.tar.xz", &hungry)).is_err());
}

/// A directory with one host stands for itself, as for `Captured::open`; one with none or several stands for what is in it.
#[test]
fn a_directory_of_captures() {
    let dir = Dir::new("captures");
    let all = || captures(&dir.0);
    let names = |paths: Vec<PathBuf>| -> Vec<String> {
        paths.iter().map(|p| p.strip_prefix(&dir.0).unwrap().display().to_string()).collect()
    };
    assert_eq!(captures(&dir.0.join("nosuch")), [dir.0.join("nosuch")]);
    assert_eq!(names(all()), [""], "an empty directory is opened, and the error names it");
    let one = dir.file("h2.tar.gz", b"not read here");
    assert_eq!((names(all()), captures(&one)), (vec!["h2.tar.gz".into()], vec![one]));
    for name in ["h10.tar", "h1.tgz", ".hidden.tar", "notes.txt"] {
        dir.file(name, b"x");
    }
    dir.link("h3.tar.xz", "h10.tar");
    dir.link("gone.tar", "nosuch");
    assert_eq!(names(all()), ["h1.tgz", "h2.tar.gz", "h3.tar.xz", "h10.tar"]);
    // One tree is what --from always read.
    dir.file("sos-a/proc/interrupts", b"CPU0\n");
    assert_eq!(names(all()), [""]);
    dir.file("sos-b/sys/class/net/eth0", b"");
    dir.file("ours/fs/proc/uptime", b"1 1");
    // A damaged manifest is reported when the directory is opened, beside the others.
    dir.file("ours/manifest.json", b"{\"schema\": \"ringwise.capture\", \"version\": ");
    assert_eq!(names(all()), ["h1.tgz", "h2.tar.gz", "h3.tar.xz", "h10.tar", "ours", "sos-a", "sos-b"]);
}
