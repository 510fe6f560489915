//! Writes `tree.tar.gz` beside every `host.toml` below a directory (`cargo xtask fixtures`).
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use ringwise_testkit::tree::{Host, Tree};

fn main() -> Result<(), Box<dyn Error>> {
    let hosts = PathBuf::from(std::env::args().nth(1).ok_or("usage: fixtures DIRECTORY")?);
    let mut folders: Vec<PathBuf> = fs::read_dir(&hosts)?.filter_map(|e| Some(e.ok()?.path())).collect();
    folders.sort();
    for folder in folders.iter().filter(|f| f.join("host.toml").is_file()) {
        let text = fs::read_to_string(folder.join("host.toml"))?;
        let named = |e: String| format!("{}: {e}", folder.join("host.toml").display());
        let host = Host::parse(&text).map_err(named)?;
        let tree = Tree::build(&host).map_err(named)?;
        let bytes = tree.tar_gz()?;
        let archive = folder.join("tree.tar.gz");
        let same = fs::read(&archive).is_ok_and(|old| old == bytes);
        if !same {
            fs::write(&archive, &bytes)?;
        }
        let (entries, size) = (tree.entries().len(), bytes.len().div_ceil(1024));
        println!("{}: {entries} entries, {size} KB{}", archive.display(), if same { ", as before" } else { "" });
    }
    Ok(())
}
