//! The initramfs: busybox, a few tools with their libraries, and the kernel's modules.

use crate::package::Arch;
use crate::{cmd, kernel, paths, setup};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Modules, which are installed with their dependencies. Missing ones are skipped unless booting needs them.
const MODULES: &[&str] = &[
    "9p",
    "9pnet_virtio",
    "virtio_pci",
    "virtio_net",
    "igb",
    "igbvf",
    "e1000e",
    "vmxnet3",
    "pktgen",
    "veth",
    "8021q",
    "bonding",
    "bridge",
    "macvlan",
    "dummy",
    "tun",
    "ifb",
    "sch_fq",
    "sch_mqprio",
    "nf_conntrack",
    "tls",
    "tcp_diag",
    "udp_diag",
    // The disk of hosts with systemd, and modules that systemd needs.
    "virtio_blk",
    "ext4",
    "autofs4",
    // For devices that are bound to programs in user space.
    "uio_pci_generic",
];
const NEEDED: &[&str] = &["9p", "9pnet_virtio"];

/// Programs of this machine. Guests of another machine have only those of busybox.
fn tools(arch: Arch) -> &'static [&'static str] {
    match arch {
        Arch::Amd64 => &["ethtool", "ip", "setpriv", "tc"],
        Arch::Arm64 => &[],
    }
}

/// The image for this kernel, from the cache or newly made.
pub(crate) fn ensure(k: &kernel::Ready) -> Result<PathBuf> {
    let busybox = setup::busybox(k.arch)?;
    let init = fs::read(paths::lab().join("init.sh"))?;
    let tools: Vec<PathBuf> = tools(k.arch).iter().map(|t| cmd::need(t)).collect::<Result<_>>()?;
    let sizes: Vec<u8> = tools
        .iter()
        .chain([&busybox])
        .map(|p| fs::metadata(p).map(|m| m.len()))
        .collect::<Result<Vec<u64>, _>>()?
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    let key = cmd::hash(&[&init, MODULES.join(" ").as_bytes(), k.release.as_bytes(), &sizes, b"3"]);
    let dir = paths::cache().join("images");
    let image = dir.join(format!("{}-{key}.cpio", k.release));
    if image.is_file() {
        return Ok(image);
    }
    fs::create_dir_all(&dir)?;
    let root = dir.join(format!("{}-{key}.root", k.release));
    let _ = fs::remove_dir_all(&root);
    for d in ["bin", "usr/bin", "proc", "sys", "dev", "tmp", "etc", "run", "h", "root", "var/lib"] {
        fs::create_dir_all(root.join(d))?;
    }
    fs::copy(&busybox, root.join("bin/busybox"))?;
    for tool in &tools {
        add_tool(tool, &root)?;
    }
    add_modules(k, &root)?;
    fs::write(root.join("init"), &init)?;
    cmd::output(Command::new("chmod").arg("755").arg(root.join("init")))?;
    let tmp = image.with_extension("tmp");
    let pack = "find . | LC_ALL=C sort | cpio -o -H newc --quiet > \"$1\"";
    cmd::output(Command::new("sh").current_dir(&root).args(["-c", pack, "sh"]).arg(&tmp))?;
    fs::rename(&tmp, &image)?;
    fs::remove_dir_all(&root)?;
    Ok(image)
}

fn add_tool(tool: &Path, root: &Path) -> Result<()> {
    let name = tool.file_name().context("a tool has a name")?;
    fs::copy(tool, root.join("usr/bin").join(name))?;
    let libs = cmd::output(Command::new("ldd").arg(tool))?;
    for word in libs.split_whitespace().filter(|w| w.starts_with('/')) {
        let to = root.join(word.trim_start_matches('/'));
        if let Some(dir) = to.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::copy(word, to)?;
    }
    Ok(())
}

fn add_modules(k: &kernel::Ready, root: &Path) -> Result<()> {
    let strip = cmd::need(match k.arch {
        Arch::Amd64 => "strip",
        Arch::Arm64 => "aarch64-linux-gnu-strip",
    })?;
    let modprobe = cmd::need("modprobe")?;
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for module in MODULES {
        let shown = cmd::output(Command::new(&modprobe).arg("-d").arg(&k.root).args([
            "-S",
            &k.release,
            "--show-depends",
            module,
        ]));
        match shown {
            Ok(text) => files.extend(
                text.lines()
                    .filter_map(|l| l.strip_prefix("insmod "))
                    .filter_map(|l| l.split_whitespace().next())
                    .map(PathBuf::from),
            ),
            Err(e) if NEEDED.contains(module) => return Err(e),
            Err(_) => {}
        }
    }
    let from = k.root.join("lib/modules").join(&k.release);
    let to = root.join("lib/modules").join(&k.release);
    for file in files {
        let inside = file
            .strip_prefix(&from)
            .or_else(|_| file.strip_prefix(fs::canonicalize(&from).unwrap_or_default()))
            .map(Path::to_path_buf)
            .or_else(|_| {
                // modprobe may print the path through a link.
                let text = file.to_string_lossy().into_owned();
                let at = text.find("/kernel/").context("a module outside kernel/")?;
                Ok::<_, anyhow::Error>(PathBuf::from(&text[at + 1..]))
            })?;
        let mut out = to.join(&inside);
        let data = match inside.extension().and_then(|e| e.to_str()) {
            Some("xz") => Some(cmd::bytes(Command::new("xz").arg("-dc").arg(&file))?),
            Some("zst") => Some(cmd::bytes(Command::new("zstd").arg("-dcq").arg(&file))?),
            Some("ko") => None,
            _ => bail!("{}: unknown module format", file.display()),
        };
        let data = match data {
            Some(d) => {
                out.set_extension("");
                d
            }
            None => fs::read(&file)?,
        };
        if let Some(dir) = out.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(&out, data)?;
        cmd::output(Command::new(&strip).arg("--strip-debug").arg(&out))?;
    }
    for list in ["modules.order", "modules.builtin", "modules.builtin.modinfo"] {
        if from.join(list).is_file() {
            fs::copy(from.join(list), to.join(list))?;
        }
    }
    cmd::output(Command::new(cmd::need("depmod")?).arg("-b").arg(root).arg(&k.release))?;
    Ok(())
}
