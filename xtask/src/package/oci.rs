//! An OCI image with the static binary alone, made from the image specification, without a daemon and without
//! root. Blobs are named by their SHA-256.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::arch::Arch;
use super::archive;
use crate::cmd;

/// Writes `to`, a tar of an image layout: `skopeo copy oci-archive:FILE ...`, `podman load`, `umoci unpack`.
pub(crate) fn write(program: &Path, to: &Path, work: &Path, arch: Arch, version: &str, time: u64) -> Result<()> {
    let root = work.join("oci-root");
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(root.join("usr/sbin"))?;
    fs::copy(program, root.join("usr/sbin/ringwise")).with_context(|| program.display().to_string())?;
    let layer = work.join("layer.tar");
    archive::tar(&root, &layer, None, time)?;

    let layout = work.join("oci");
    let _ = fs::remove_dir_all(&layout);
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    let plain = fs::read(&layer)?;
    let packed = gzip(&layer)?;
    let layer = blob(&layout, "application/vnd.oci.image.layer.v1.tar+gzip", &packed)?;
    let created = cmd::output(Command::new("date").args(["--utc", "-d", &format!("@{time}"), "+%Y-%m-%dT%H:%M:%SZ"]))?;
    let config = json!({
        "created": created.trim(),
        "architecture": arch.debian(),
        "os": "linux",
        "config": { "Entrypoint": ["/usr/sbin/ringwise"], "Env": ["PATH=/usr/sbin"] },
        "rootfs": { "type": "layers", "diff_ids": [digest(&plain)] },
        "history": [{ "created": created.trim(), "created_by": "cargo xtask package" }],
    });
    let config = blob(&layout, "application/vnd.oci.image.config.v1+json", &serde_json::to_vec(&config)?)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": [layer],
        "annotations": { "org.opencontainers.image.version": version },
    });
    let mut manifest = blob(&layout, "application/vnd.oci.image.manifest.v1+json", &serde_json::to_vec(&manifest)?)?;
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": version });
    manifest["platform"] = json!({ "architecture": arch.debian(), "os": "linux" });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    fs::write(layout.join("index.json"), serde_json::to_vec(&index)?)?;
    fs::write(layout.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    archive::tar(&layout, to, None, time)
}

/// Writes a blob; returns its descriptor.
fn blob(layout: &Path, kind: &str, bytes: &[u8]) -> Result<Value> {
    let digest = digest(bytes);
    let name = digest.split_once(':').map_or("", |(_, hex)| hex);
    fs::write(layout.join("blobs/sha256").join(name), bytes)?;
    Ok(json!({ "mediaType": kind, "digest": digest, "size": bytes.len() }))
}

fn digest(bytes: &[u8]) -> String {
    let hash = hmac_sha256::Hash::hash(bytes);
    hash.iter().fold("sha256:".to_string(), |text, b| text + &format!("{b:02x}"))
}

fn gzip(file: &Path) -> Result<Vec<u8>> {
    cmd::bytes(Command::new("gzip").args(["--best", "--no-name", "--stdout"]).arg(file))
}

/// Unpacks the image's only layer into a bundle, and runs `ringwise ARGS` in it with runc. Returns its output.
pub(crate) fn start(image: &Path, work: &Path, args: &[&str]) -> Result<String> {
    let bundle = work.join("bundle");
    let _ = fs::remove_dir_all(&bundle);
    let layout = bundle.join("layout");
    fs::create_dir_all(&layout)?;
    cmd::output(Command::new("tar").arg("-xf").arg(image).arg("-C").arg(&layout))?;
    let read = |path: &Path| -> Result<Value> {
        serde_json::from_slice(&fs::read(path)?).with_context(|| path.display().to_string())
    };
    let of = |descriptor: &Value| -> Result<std::path::PathBuf> {
        let digest = descriptor["digest"].as_str().context("a descriptor without digest")?;
        let bytes = fs::read(layout.join("blobs").join(digest.replace(':', "/")))?;
        anyhow::ensure!(self::digest(&bytes) == digest, "the blob {digest} has other content");
        Ok(layout.join("blobs").join(digest.replace(':', "/")))
    };
    let manifest = read(&of(&read(&layout.join("index.json"))?["manifests"][0])?)?;
    let entry =
        read(&of(&manifest["config"])?)?["config"]["Entrypoint"][0].as_str().context("no entrypoint")?.to_string();
    let rootfs = bundle.join("rootfs");
    fs::create_dir_all(&rootfs)?;
    cmd::output(Command::new("tar").arg("-xzf").arg(of(&manifest["layers"][0])?).arg("-C").arg(&rootfs))?;
    cmd::output(Command::new(cmd::need("runc")?).current_dir(&bundle).arg("spec"))?;
    let spec = bundle.join("config.json");
    let mut config = read(&spec)?;
    let words: Vec<&str> = std::iter::once(entry.as_str()).chain(args.iter().copied()).collect();
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(words);
    fs::write(&spec, serde_json::to_vec(&config)?)?;
    let name = format!("ringwise-{}", std::process::id());
    cmd::output(Command::new(cmd::need("runc")?).current_dir(&bundle).args(["run", &name]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha256() {
        assert_eq!(digest(b"abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
