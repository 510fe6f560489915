//! The manifest that cargo-deb and cargo-generate-rpm read, made from the description, so that both packages hold the same.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use super::description::Description;
use super::stage::Stage;

#[derive(Serialize)]
struct Manifest<'a> {
    package: Package<'a>,
    /// The stage is no member of the workspace around it.
    workspace: Empty,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Package<'a> {
    name: &'a str,
    version: &'a str,
    edition: &'a str,
    license: &'a str,
    description: &'a str,
    authors: [&'a str; 1],
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    deb: Deb<'a>,
    #[serde(rename = "generate-rpm")]
    rpm: Rpm<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Deb<'a> {
    maintainer: &'a str,
    copyright: &'a str,
    license_file: [String; 2],
    extended_description: String,
    depends: &'a str,
    section: &'a str,
    priority: &'a str,
    maintainer_scripts: String,
    conf_files: Vec<String>,
    assets: Vec<[String; 3]>,
}

#[derive(Serialize)]
struct Rpm<'a> {
    summary: &'a str,
    description: String,
    license: &'a str,
    release: &'a str,
    group: &'a str,
    post_install_script: String,
    pre_uninstall_script: String,
    post_uninstall_script: String,
    assets: Vec<RpmAsset>,
}

#[derive(Serialize)]
struct RpmAsset {
    source: String,
    dest: String,
    mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<&'static str>,
    doc: bool,
}

const LICENCE: &str = "Apache-2.0 OR MIT";

/// Writes `work/Cargo.toml`, with a source file that cargo requires. Returns its path.
pub(crate) fn write(work: &Path, root: &Path, d: &Description, stage: &Stage, version: &str) -> Result<PathBuf> {
    fs::create_dir_all(work.join("src"))?;
    fs::write(work.join("src/lib.rs"), "")?;
    let script = |name: &str| root.join("packaging/scripts").join(name).display().to_string();
    let path = |p: &Path| p.display().to_string();
    let deb = Deb {
        maintainer: &d.maintainer,
        copyright: "The ringwise authors",
        license_file: [path(&root.join("packaging/copyright")), "0".into()],
        extended_description: d.description.clone(),
        depends: "",
        section: &d.section,
        priority: "optional",
        maintainer_scripts: path(&root.join("packaging/scripts")),
        conf_files: stage.files.iter().filter(|f| f.config).map(|f| format!("/{}", f.to)).collect(),
        assets: stage.files.iter().map(|f| [path(&f.from), f.to.clone(), f.mode.clone()]).collect(),
    };
    let rpm = Rpm {
        summary: &d.summary,
        description: d.description.replace("\n.\n", "\n\n"),
        license: LICENCE,
        release: "1",
        group: &d.group,
        post_install_script: script("postinst"),
        pre_uninstall_script: script("prerm"),
        post_uninstall_script: script("postrm"),
        assets: stage
            .files
            .iter()
            // Debian's own log.
            .filter(|f| !f.to.contains("changelog.Debian"))
            .map(|f| RpmAsset {
                source: path(&f.from),
                dest: format!("/{}", f.to),
                mode: f.mode.clone(),
                config: f.config.then_some("noreplace"),
                doc: f.to.starts_with("usr/share/man/") || f.to.starts_with("usr/share/doc/"),
            })
            .collect(),
    };
    let manifest = Manifest {
        package: Package {
            name: &d.name,
            version,
            edition: "2024",
            license: LICENCE,
            description: &d.summary,
            authors: [&d.maintainer],
            metadata: Metadata { deb, rpm },
        },
        workspace: Empty {},
    };
    let file = work.join("Cargo.toml");
    fs::write(&file, toml::to_string(&manifest)?)?;
    Ok(file)
}
