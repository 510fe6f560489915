//! Every public parser on mutated realistic inputs: the same mutations in every run.

#[path = "common/samples.rs"]
mod samples;

use crate::common::FAMILIES;

const MUTATIONS: u32 = 20_000;
const SEED: u64 = 0x7269_6e67_7769_7365;

/// xorshift64*: enough to choose mutations, and the same everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }
}

/// Bytes and words that parsers stumble over.
const SPICE: [&[u8]; 24] = [
    b"\0",
    b"\n",
    b",",
    b"-",
    b":",
    b"/",
    b"0x",
    b" ",
    b"\xff",
    b"4294967296",
    b"18446744073709551616",
    b"-1",
    b"+",
    b"=",
    b"\"",
    b"N",
    b"all",
    b"0-65535,",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"\x04\0",
    b"\xff\xff",
    b"CPU9 ",
    b"\xe2\x80",
];

fn mutate(rng: &mut Rng, data: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=rng.below(4) {
        let at = rng.below(data.len() + 1);
        match rng.below(8) {
            0 => {
                if let Some(b) = data.get_mut(at) {
                    *b ^= 1 << rng.below(8);
                }
            }
            1 => {
                if let Some(b) = data.get_mut(at) {
                    *b = rng.next() as u8;
                }
            }
            2 => {
                let spice = SPICE[rng.below(SPICE.len())];
                data.splice(at..at, spice.iter().copied());
            }
            3 => {
                let end = at + rng.below(data.len() - at + 1).min(8);
                data.drain(at..end);
            }
            4 => data.truncate(at),
            5 => {
                let end = at + rng.below(data.len() - at + 1).min(64);
                let piece = data[at..end].to_vec();
                data.splice(at..at, piece);
            }
            6 => {
                let from = rng.below(other.len() + 1);
                let end = from + rng.below(other.len() - from + 1);
                data.splice(at..at, other[from..end].iter().copied());
            }
            _ => {
                let spice = SPICE[rng.below(SPICE.len())];
                let end = (at + spice.len()).min(data.len());
                data.splice(at..end, spice.iter().copied());
            }
        }
    }
}

#[test]
fn mutated_inputs_never_panic_and_keep_what_must_hold() {
    for (name, run) in FAMILIES {
        let samples = samples::of(name);
        let mut rng = Rng(SEED);
        for sample in &samples {
            run(sample);
        }
        for round in 0..MUTATIONS {
            let mut data = samples[rng.below(samples.len())].clone();
            let other = &samples[rng.below(samples.len())];
            mutate(&mut rng, &mut data, other);
            let outcome = std::panic::catch_unwind(|| run(&data));
            assert!(outcome.is_ok(), "{name}, mutation {round}: {:?}", data.escape_ascii().to_string());
        }
    }
}

/// Inputs that once made a parser fail. The file's name begins with its family: `cpus-…`.
#[test]
fn regressions() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let mut seen = 0;
    for entry in std::fs::read_dir(dir).expect("the directory is part of the sources") {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        let family = name.split('-').next().unwrap();
        let run = FAMILIES.iter().find(|f| f.0 == family).unwrap_or_else(|| panic!("{name}: no such family")).1;
        run(&std::fs::read(&path).unwrap());
        seen += 1;
    }
    println!("{seen} regression cases");
}
