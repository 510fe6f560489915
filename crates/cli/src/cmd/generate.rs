//! Man pages and completions from the flag table. Hidden: packagers call them.

use std::path::Path;

use crate::args::command;
use crate::exit::{Fail, Result, Status};
use crate::out;

/// `ringwise.8` and `ringwise-COMMAND.8` into `dir`.
pub fn man(dir: &Path) -> Result<Status> {
    std::fs::create_dir_all(dir).map_err(|e| Fail::error(format!("{}: {e}", dir.display())))?;
    let root = command();
    let version = env!("CARGO_PKG_VERSION");
    let write = |cmd: clap::Command, name: &str| -> Result<()> {
        let mut text = Vec::new();
        clap_mangen::Man::new(cmd)
            .section("8")
            .title(name)
            .source(format!("ringwise {version}"))
            .manual("System Administration")
            .render(&mut text)
            .map_err(|e| Fail::error(format!("{name}: {e}")))?;
        let file = dir.join(format!("{name}.8"));
        std::fs::write(&file, text).map_err(|e| Fail::error(format!("{}: {e}", file.display())))
    };
    let mut built = root.clone();
    built.build();
    for sub in built.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = format!("ringwise-{}", sub.get_name());
        // The name is a leaked literal in clap's type; one a command, in a program that ends at once.
        write(sub.clone().name(&*Box::leak(name.clone().into_boxed_str())), &name)?;
    }
    write(root, "ringwise")?;
    Ok(Status::Ok)
}

pub fn completions(shell: clap_complete::Shell) -> Result<Status> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command(), "ringwise", &mut text);
    out::answer(&String::from_utf8_lossy(&text))?;
    Ok(Status::Ok)
}
