use super::*;

const X86: &str = "           CPU0       CPU2       \n  \
  0:          7          0  IR-IO-APIC    2-edge      timer\n \
 16:          0          0  IR-IO-APIC   16-fasteoi   ehci_hcd:usb1, i801_smbus\n \
 36:       1200         34  IR-PCI-MSI 524288-edge      eth0\n \
 37:          1          2  PCI-MSIX-0000:81:00.0    1-edge      eth0-TxRx-0\n \
 38:          0          0  PCI-MSIX-0000:81:00.0    2-edge    \n \
 39:          5          0  PCI-MSI 1048577-edge      eth0 CQ 0\n \
 40:          5          0  PCI-MSI-0000:00:03.0    1-edge      virtio0-input.0\n \
 41:          5          0   xen-dyn    -event     eth0-q0-tx\n \
NMI:          1          2   Non-maskable interrupts\n \
ERR:          0\n \
MIS:          3\n";

fn names(i: &Interrupts, label: &str) -> Vec<String> {
    i.rows.iter().find(|r| r.head.label == label).unwrap().head.names.clone()
}

#[test]
fn reads_an_x86_table() {
    let t = parse(X86.as_bytes()).unwrap();
    assert_eq!(t.cpus, [CpuId(0), CpuId(2)]);
    assert_eq!(t.rows.len(), 11);
    assert_eq!(names(&t, "16"), ["ehci_hcd:usb1", "i801_smbus"]);
    assert_eq!(names(&t, "39"), ["eth0 CQ 0"]);
    assert_eq!(names(&t, "38"), [""; 0]);
    let r = &t.rows[3];
    assert_eq!((r.head.irq, r.head.chip.as_str()), (Some(IrqId(37)), "PCI-MSIX-0000:81:00.0"));
    assert_eq!((r.head.hwirq.as_str(), &r.counts), ("1-edge", &vec![1, 2]));
    assert_eq!(t.rows[4].head.hwirq, "2-edge");
    assert_eq!((t.rows[7].head.hwirq.as_str(), names(&t, "41")), ("-event", vec!["eth0-q0-tx".to_string()]));
    assert_eq!((t.rows[8].head.irq, names(&t, "NMI")), (None, vec!["Non-maskable interrupts".to_string()]));
    assert_eq!((&t.rows[9].counts, &t.rows[10].counts), (&vec![0], &vec![3]));
}

#[test]
fn reads_an_arm64_table() {
    let text = "           CPU0       CPU1       \n 11:        100        200     GICv3  30 Level     arch_timer\n \
 52:          7          8   ITS-MSI 524288 Edge      eth0\n \
 53:          7          8   ITS-PCI-MSIX-0000:01:00.0   1 Edge      eth0-TxRx-0\n \
 54:          0          0   ITS-MSI 1048576 Edge    \nIPI0:        11         22       Rescheduling interrupts\nErr:          0\n";
    let t = parse_totals(text.as_bytes()).unwrap();
    let got: Vec<_> = t.rows.iter().map(|r| (r.head.hwirq.as_str(), r.head.names.join("|"), r.total)).collect();
    assert_eq!(got[0], ("30 Level", "arch_timer".into(), Some(300)));
    assert_eq!(got[1], ("524288 Edge", "eth0".into(), Some(15)));
    assert_eq!(got[2], ("1 Edge", "eth0-TxRx-0".into(), Some(15)));
    assert_eq!(got[3], ("1048576 Edge", String::new(), Some(0)));
    assert_eq!(got[4], ("", "Rescheduling interrupts".into(), Some(33)));
    assert_eq!(t.rows[2].head.chip, "ITS-PCI-MSIX-0000:01:00.0");
}

/// Chip, hardware number and action of rows from public captures, and of variants of them.
#[test]
fn chip_names_may_hold_spaces() {
    for (line, want) in [
        // Azure, mlx5 and MANA (the latter: netdev mailing list, March 2024).
        (
            " 34:        154       9690  Hyper-V PCIe MSI 2701534461953-edge      mlx5_comp0@pci:4ea0:00:02.0",
            ("Hyper-V PCIe MSI", "2701534461953-edge", "mlx5_comp0@pci:4ea0:00:02.0"),
        ),
        (
            " 26:          0          1  Hyper-V PCIe MSI 4138200989698-edge      mana_q1@pci:7870:00:00.0",
            ("Hyper-V PCIe MSI", "4138200989698-edge", "mana_q1@pci:7870:00:00.0"),
        ),
        // Raspberry Pi 4.
        (
            " 46:        364          0  BRCM STB PCIe MSI 524288 Edge      xhci_hcd",
            ("BRCM STB PCIe MSI", "524288 Edge", "xhci_hcd"),
        ),
        (" 22:          0          0     GICv2 112 Level     bcm2708_fb DMA", ("GICv2", "112 Level", "bcm2708_fb DMA")),
        // Loongson prints no trigger: commit message of "irqchip/loongson-pch-msi: Fix hwirq setting".
        (
            " 63:          6        173     PCH PCI MSI 1572865  enp3s0f0-rx-0",
            ("PCH PCI MSI", "1572865", "enp3s0f0-rx-0"),
        ),
        (" 63:         12          4     PCH PCI MSI  73  enp3s0f0-rx-0", ("PCH PCI MSI", "73", "enp3s0f0-rx-0")),
        (" 30:          0          0      PCH PIC  47  acpi", ("PCH PIC", "47", "acpi")),
        // RISC-V, with and without the trigger.
        ("  1:        355          0  SiFive PLIC   5 Edge      virtio0", ("SiFive PLIC", "5 Edge", "virtio0")),
        ("  3:        591          0  SiFive PLIC   8  virtio0", ("SiFive PLIC", "8", "virtio0")),
        ("  1:          0          0  SiFive PLIC   5  10011000.serial", ("SiFive PLIC", "5", "10011000.serial")),
        // No hardware number: s390, Xen, and older kernels.
        (
            "  4:     282741          0   PCI-MSI  mlx5_comp0@pci:0001:00:00.0",
            ("PCI-MSI", "", "mlx5_comp0@pci:0001:00:00.0"),
        ),
        ("100:         33          0   xen-dyn-event     vif0-q0-tx", ("xen-dyn-event", "", "vif0-q0-tx")),
        (" 69:         70          0   PCI-MSI-edge      eth5-rx-0", ("PCI-MSI-edge", "", "eth5-rx-0")),
        (
            " 28:     123648          0  Hyper-V PCIe MSI-edge      eth1 CQ 1",
            ("Hyper-V PCIe MSI-edge", "", "eth1 CQ 1"),
        ),
        // Spaces were squeezed by the program that made the capture.
        (" 52: 3172 0 IR-PCI-MSI-edge eth0-TxRx-0", ("IR-PCI-MSI-edge", "", "eth0-TxRx-0")),
        (" 52: 3172 0 Hyper-V PCIe MSI 27-edge mlx5_async0", ("Hyper-V PCIe MSI", "27-edge", "mlx5_async0")),
        // No driver has requested it.
        (
            " 38:          0          0  Hyper-V PCIe MSI 2701534461960-edge    ",
            ("Hyper-V PCIe MSI", "2701534461960-edge", ""),
        ),
    ] {
        let t = parse(format!("CPU0 CPU1\n{line}\n").as_bytes()).unwrap();
        let head = &t.rows[0].head;
        assert_eq!((head.chip.as_str(), head.hwirq.as_str(), head.names.join("|").as_str()), want, "{line}");
    }
}

#[test]
fn totals_agree_with_counts() {
    let (full, sums) = (parse(X86.as_bytes()).unwrap(), parse_totals(X86.as_bytes()).unwrap());
    assert_eq!(full.cpus, sums.cpus);
    for (r, t) in full.rows.iter().zip(&sums.rows) {
        assert_eq!((&r.head, r.counts.iter().sum::<u64>()), (&t.head, t.total.unwrap()));
    }
    assert_eq!(full.rows.len(), sums.rows.len());
}

#[test]
fn refuses_what_is_no_table_and_names_the_line() {
    for (text, line) in [
        ("", 1),
        ("\0\0\0", 1),
        ("  CPU0 x\n", 1),
        ("CPU99999999999\n", 1),
        ("CPU0\n\n 1: 5\n 2 6\n", 4),
        ("CPU0\n 1: 5x IO-APIC\n", 2),
        ("CPU0\n 1: 99999999999999999999 IO-APIC\n", 2),
        ("CPU0\n : 12\n", 2),
    ] {
        assert_eq!(parse(text.as_bytes()).unwrap_err().line, Some(line), "{text:?}");
    }
    let big = format!("CPU0 CPU1\n 1: {} 1 PCI-MSI 1-edge x\n", u64::MAX);
    assert!(parse(big.as_bytes()).is_ok());
    assert!(parse_totals(big.as_bytes()).is_err());
}

/// If a CPU goes offline while the kernel prints, or a copy is truncated, the other rows are complete.
#[test]
fn a_short_row_loses_only_its_own_total() {
    let text = "CPU0 CPU1\n 1: 5 IO-APIC 1-edge i8042\n 30: 7 8 PCI-MSI 1-edge eth0-0\n 31: 12";
    let full = parse(text.as_bytes()).unwrap();
    let counts: Vec<(usize, bool)> = full.rows.iter().map(|r| (r.counts.len(), full.is_whole(r))).collect();
    assert_eq!(counts, [(1, false), (2, true), (1, false)]);
    assert_eq!((names(&full, "1"), names(&full, "30")), (vec!["i8042".to_string()], vec!["eth0-0".to_string()]));
    let sums = parse_totals(text.as_bytes()).unwrap();
    assert_eq!(sums.rows.iter().map(|r| r.total).collect::<Vec<_>>(), [None, Some(15), None]);
}

#[test]
fn a_wide_table_with_short_lines_stays_small() {
    let mut text = "CPU0 ".repeat(20_000);
    text.push('\n');
    text.push_str(&"a:\n".repeat(20_000));
    let t = parse(text.as_bytes()).unwrap();
    assert!(t.rows.iter().all(|r| r.counts.capacity() <= 8));
}

/// 512 CPUs × 2,048 rows, 12 MB; its time is measured by the discovery bench.
#[test]
fn large_table_is_read_whole() {
    let mut text: String = (0..512).map(|c| format!("CPU{c:<7} ")).collect();
    for irq in 0..2048 {
        text.push_str(&format!(
            "\n{irq:4}:{} PCI-MSIX-0000:81:00.0 {irq}-edge eth0-TxRx-{irq}",
            "      12345".repeat(512)
        ));
    }
    let t = parse_totals(text.as_bytes()).unwrap();
    assert_eq!((t.rows.len(), t.rows[2047].total), (2048, Some(512 * 12345)));
}
