//! An assembler for those instructions of eBPF that ringwise uses, with labels for jumps forward.
//! Encoding: `struct bpf_insn` in include/uapi/linux/bpf.h, Documentation/bpf/standardization/instruction-set.rst.

// Classes.
const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const STX: u8 = 0x03;
const ALU32: u8 = 0x04;
const JMP: u8 = 0x05;
const ALU64: u8 = 0x07;
// Where the second operand comes from: the immediate value (0) or a register.
const REGISTER: u8 = 0x08;
// Mode of an access to memory at register plus offset.
const MEM: u8 = 0x60;
// Operations of ALU32 and ALU64.
const ADD: u8 = 0x00;
const SUB: u8 = 0x10;
const AND: u8 = 0x50;
const MOD: u8 = 0x90;
const MOV: u8 = 0xb0;
// Operations of JMP.
const JA: u8 = 0x00;
const JEQ: u8 = 0x10;
const JNE: u8 = 0x50;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// Size of a double word, also that of an immediate value of 64 bits.
const DW: u8 = 0x18;
/// `BPF_PSEUDO_MAP_FD`: the immediate value is the descriptor of a map, which the kernel replaces by the map.
const PSEUDO_MAP_FD: u8 = 1;

/// A register. A call changes 0 (its result) to 5; 6 to 9 survive it; 10 is the end of the stack and read-only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Register {
    R0,
    R1,
    R2,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// Size of an access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Width {
    /// 32 bits (`BPF_W`).
    Word = 0x00,
    /// 64 bits (`BPF_DW`).
    Double = DW,
}

/// When a jump is taken. All 64 bits are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The register equals this value.
    Is(Register, i32),
    /// The register differs from this value.
    IsNot(Register, i32),
    /// Both registers are equal.
    Same(Register, Register),
}

/// `struct bpf_insn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    /// Two fields of four bits: destination and source.
    registers: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    fn new(code: u8, to: Register, from: u8, offset: i16, immediate: i32) -> Self {
        let (to, from) = (to as u8, from);
        // The compiler of the kernel places the first bit field in the low bits on little-endian machines only.
        let registers = if cfg!(target_endian = "big") { to << 4 | from } else { from << 4 | to };
        Self { code, registers, offset, immediate }
    }

    #[cfg(test)]
    fn bytes(self) -> [u8; 8] {
        let mut out = [self.code, self.registers, 0, 0, 0, 0, 0, 0];
        out[2..4].copy_from_slice(&self.offset.to_ne_bytes());
        out[4..].copy_from_slice(&self.immediate.to_ne_bytes());
        out
    }
}

/// A place further down to which jumps go.
#[derive(Debug)]
pub(crate) struct Label {
    /// Positions of the jumps.
    jumps: Vec<usize>,
}

/// Collects instructions in their order.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    program: Vec<Instruction>,
}

impl Assembler {
    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        self.program.push(Instruction::new(code, to, from, offset, immediate));
    }

    /// `to = from`, 64 bits.
    pub(crate) fn copy(&mut self, to: Register, from: Register) {
        self.push(ALU64 | MOV | REGISTER, to, from as u8, 0, 0);
    }

    /// `to = value`, with the sign extended to 64 bits.
    pub(crate) fn set(&mut self, to: Register, value: i32) {
        self.push(ALU64 | MOV, to, 0, 0, value);
    }

    /// `to += value`, 64 bits.
    pub(crate) fn add(&mut self, to: Register, value: i32) {
        self.push(ALU64 | ADD, to, 0, 0, value);
    }

    /// `to += from`, 64 bits.
    pub(crate) fn add_register(&mut self, to: Register, from: Register) {
        self.push(ALU64 | ADD | REGISTER, to, from as u8, 0, 0);
    }

    /// `to -= value`, 64 bits.
    pub(crate) fn subtract(&mut self, to: Register, value: i32) {
        self.push(ALU64 | SUB, to, 0, 0, value);
    }

    /// `to %= divisor`, unsigned, in the low 32 bits; the high ones become 0. The divisor must not be 0.
    pub(crate) fn remainder(&mut self, to: Register, divisor: u32) {
        if divisor.is_power_of_two() {
            // The same result without a division, which takes many times as long.
            self.push(ALU32 | AND, to, 0, 0, (divisor - 1) as i32);
        } else {
            self.push(ALU32 | MOD, to, 0, 0, divisor as i32);
        }
    }

    /// `to = *(base + offset)`; a word is extended with zeros.
    pub(crate) fn load(&mut self, width: Width, to: Register, base: Register, offset: i16) {
        self.push(LDX | MEM | width as u8, to, base as u8, offset, 0);
    }

    /// `*(base + offset) = from`.
    pub(crate) fn store(&mut self, width: Width, base: Register, offset: i16, from: Register) {
        self.push(STX | MEM | width as u8, base, from as u8, offset, 0);
    }

    /// `to =` the map behind this descriptor. Two instructions (`BPF_LD_MAP_FD`).
    pub(crate) fn load_map(&mut self, to: Register, fd: i32) {
        self.push(LD | DW, to, PSEUDO_MAP_FD, 0, fd);
        self.push(0, Register::R0, 0, 0, 0);
    }

    /// Calls the kernel's helper function with this number (`enum bpf_func_id`).
    pub(crate) fn call(&mut self, helper: i32) {
        self.push(JMP | CALL, Register::R0, 0, 0, helper);
    }

    /// Ends the program; register 0 is its result.
    pub(crate) fn exit(&mut self) {
        self.push(JMP | EXIT, Register::R0, 0, 0, 0);
    }

    /// A label that has no place yet.
    pub(crate) fn label(&self) -> Label {
        Label { jumps: Vec::new() }
    }

    /// Continues at the label.
    pub(crate) fn jump(&mut self, to: &mut Label) {
        to.jumps.push(self.program.len());
        self.push(JMP | JA, Register::R0, 0, 0, 0);
    }

    /// Continues at the label if the condition holds.
    pub(crate) fn jump_if(&mut self, condition: Condition, to: &mut Label) {
        to.jumps.push(self.program.len());
        match condition {
            Condition::Is(register, value) => self.push(JMP | JEQ, register, 0, 0, value),
            Condition::IsNot(register, value) => self.push(JMP | JNE, register, 0, 0, value),
            Condition::Same(a, b) => self.push(JMP | JEQ | REGISTER, a, b as u8, 0, 0),
        }
    }

    /// The label is here.
    pub(crate) fn place(&mut self, label: Label) {
        for jump in label.jumps {
            // Counted from the instruction after the jump.
            let distance = self.program.len() - jump - 1;
            self.program[jump].offset = i16::try_from(distance).expect("programs are shorter than 32,768 instructions");
        }
    }

    pub(crate) fn finish(self) -> Vec<Instruction> {
        self.program
    }
}

#[cfg(test)]
mod tests {
    use super::Register::*;
    use super::*;

    /// The bytes of one call, as text.
    fn encoded(f: impl FnOnce(&mut Assembler)) -> String {
        let mut a = Assembler::default();
        f(&mut a);
        let bytes = a.finish().into_iter().flat_map(Instruction::bytes);
        bytes.map(|b| format!("{b:02x}")).collect()
    }

    /// What gcc makes of the macros of the kernel's samples/bpf/bpf_insn.h on a little-endian machine.
    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_are_those_of_the_macros_of_the_kernel() {
        assert_eq!(size_of::<Instruction>(), 8);
        // BPF_MOV64_REG(BPF_REG_6, BPF_REG_1)
        assert_eq!(encoded(|a| a.copy(R6, R1)), "bf16000000000000");
        // BPF_MOV64_IMM(BPF_REG_0, 0), BPF_MOV64_IMM(BPF_REG_2, -1)
        assert_eq!(encoded(|a| a.set(R0, 0)), "b700000000000000");
        assert_eq!(encoded(|a| a.set(R2, -1)), "b7020000ffffffff");
        // BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, -4)
        assert_eq!(encoded(|a| a.add(R2, -4)), "07020000fcffffff");
        // BPF_ALU64_REG(BPF_ADD, BPF_REG_1, BPF_REG_2)
        assert_eq!(encoded(|a| a.add_register(R1, R2)), "0f21000000000000");
        // BPF_ALU64_IMM(BPF_SUB, BPF_REG_8, 1)
        assert_eq!(encoded(|a| a.subtract(R8, 1)), "1708000001000000");
        // BPF_ALU32_IMM(BPF_AND, BPF_REG_7, 127), BPF_ALU32_IMM(BPF_MOD, BPF_REG_7, 100)
        assert_eq!(encoded(|a| a.remainder(R7, 128)), "540700007f000000");
        assert_eq!(encoded(|a| a.remainder(R7, 100)), "9407000064000000");
        assert_eq!(encoded(|a| a.remainder(R7, 1)), "5407000000000000");
        // BPF_LDX_MEM(BPF_W, BPF_REG_7, BPF_REG_6, 68), BPF_LDX_MEM(BPF_DW, BPF_REG_1, BPF_REG_9, 8)
        assert_eq!(encoded(|a| a.load(Width::Word, R7, R6, 68)), "6167440000000000");
        assert_eq!(encoded(|a| a.load(Width::Double, R1, R9, 8)), "7991080000000000");
        // BPF_STX_MEM(BPF_W, BPF_REG_10, BPF_REG_2, -4), BPF_STX_MEM(BPF_DW, BPF_REG_9, BPF_REG_1, 8)
        assert_eq!(encoded(|a| a.store(Width::Word, R10, -4, R2)), "632afcff00000000");
        assert_eq!(encoded(|a| a.store(Width::Double, R9, 8, R1)), "7b19080000000000");
        // BPF_LD_MAP_FD(BPF_REG_1, 5)
        assert_eq!(encoded(|a| a.load_map(R1, 5)), "18110000050000000000000000000000");
        // BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem), BPF_EXIT_INSN()
        assert_eq!(encoded(|a| a.call(1)), "8500000001000000");
        assert_eq!(encoded(Assembler::exit), "9500000000000000");
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn jumps_go_to_their_label() {
        let text = encoded(|a| {
            let mut end = a.label();
            a.jump_if(Condition::Is(R7, 0), &mut end);
            a.jump_if(Condition::IsNot(R0, 0), &mut end);
            a.jump_if(Condition::Same(R1, R8), &mut end);
            a.jump(&mut end);
            a.set(R0, 1);
            a.place(end);
            a.exit();
        });
        // BPF_JMP_IMM(BPF_JEQ, BPF_REG_7, 0, 4), BPF_JMP_IMM(BPF_JNE, BPF_REG_0, 0, 3),
        // BPF_JMP_REG(BPF_JEQ, BPF_REG_1, BPF_REG_8, 2), BPF_JMP_A(1), BPF_MOV64_IMM(BPF_REG_0, 1), BPF_EXIT_INSN()
        let expected =
            ["1507040000000000", "5500030000000000", "1d81020000000000", "0500010000000000", "b700000001000000"];
        assert_eq!(text, expected.concat() + "9500000000000000");
    }
}
