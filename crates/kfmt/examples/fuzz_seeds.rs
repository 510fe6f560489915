//! Writes the sample inputs of one family as files: `fuzz_seeds FAMILY DIRECTORY`. Used by `fuzz/run`.

#[path = "../tests/common/samples.rs"]
mod samples;

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let [_, family, dir] = args.as_slice() else {
        eprintln!("usage: fuzz_seeds FAMILY DIRECTORY");
        std::process::exit(2);
    };
    for (i, sample) in samples::of(family).iter().enumerate() {
        std::fs::write(format!("{dir}/seed-{i}"), sample)?;
    }
    Ok(())
}
