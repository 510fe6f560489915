//! eBPF without a compiler, without a library and without BTF: instructions, maps, and programs that filter a socket (bpf(2)).
//! Maps and programs belong to this process and vanish with their descriptors; nothing is pinned in a file system.

mod instruction;
mod program;
mod refusal;
mod syscall;

pub(crate) use instruction::{Assembler, Condition, Instruction, Register, Width};
pub(crate) use program::{BpfProgram, LoadError};
pub(crate) use syscall::{Map, MapKind};
