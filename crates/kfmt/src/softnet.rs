//! `/proc/net/softnet_stat` (net/core/net-procfs.c): one row of hexadecimal words for each online CPU.

use ringwise_model::CpuId;

use crate::ParseError;

const WHAT: &str = "/proc/net/softnet_stat";

/// One CPU's row. Counters since boot, 32 bits wide in the kernel: they wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftnetRow {
    /// Column 13. `None` on kernels that print fewer columns. There, rows of offline CPUs are missing, so the row
    /// number is not the CPU number.
    pub cpu: Option<CpuId>,
    /// Packets taken from the backlog and by NAPI.
    pub processed: u32,
    /// Packets dropped because the backlog was full.
    pub dropped: u32,
    /// Rounds that ended with work left, because budget or time was used up.
    pub time_squeeze: u32,
    /// Column 10: wake-ups received from other CPUs for RPS.
    pub received_rps: Option<u32>,
    /// Column 11: packets dropped by the flow limit.
    pub flow_limit: Option<u32>,
    /// Column 12: packets in both queues of the backlog now.
    pub backlog: Option<u32>,
    /// Column 14: packets in the input queue now.
    pub input_queue: Option<u32>,
    /// Column 15: packets in the process queue now.
    pub process_queue: Option<u32>,
}

/// Rows in the order of the file. They have 9 columns or more; columns after the 15th are ignored.
pub fn parse(text: &str) -> Result<Vec<SoftnetRow>, ParseError> {
    let mut rows = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let bad = |found: &str, expected| ParseError::at(WHAT, i + 1, found, expected);
        let mut col = [None; 15];
        let mut n = 0;
        for word in line.split_whitespace() {
            if word.len() > 8 || !word.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(bad(word, "hexadecimal words of at most 8 digits"));
            }
            if let Some(c) = col.get_mut(n) {
                *c = u32::from_str_radix(word, 16).ok();
            }
            n += 1;
        }
        let (9.., [Some(processed), Some(dropped), Some(time_squeeze), ..]) = (n, col) else {
            return Err(bad(line, "9 or more columns"));
        };
        rows.push(SoftnetRow {
            cpu: col[12].map(CpuId),
            processed,
            dropped,
            time_squeeze,
            received_rps: col[9],
            flow_limit: col[10],
            backlog: col[11],
            input_queue: col[13],
            process_queue: col[14],
        });
    }
    if rows.is_empty() {
        return Err(ParseError::new(WHAT, text, "a row for each online CPU"));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fifteen_columns() {
        let row = "0000000a 00000002 00000003 0 0 0 0 0 0 0000001f 00000004 00000007 00000005 00000006 00000001\n";
        let r = parse(row).unwrap()[0];
        assert_eq!((r.cpu, r.processed, r.dropped, r.time_squeeze), (Some(CpuId(5)), 10, 2, 3));
        assert_eq!((r.received_rps, r.flow_limit, r.backlog), (Some(31), Some(4), Some(7)));
        assert_eq!((r.input_queue, r.process_queue), (Some(6), Some(1)));
    }

    #[test]
    fn reads_older_and_newer_kernels() {
        let nine = parse("1 2 3 0 0 0 0 0 0\n1 2 3 0 0 0 0 0 0\n").unwrap();
        assert_eq!((nine.len(), nine[1].cpu, nine[1].received_rps), (2, None, None));
        assert_eq!(parse("1 2 3 0 0 0 0 0 0 1 2 3 c").unwrap()[0].cpu, Some(CpuId(12)));
        assert_eq!(parse(&"1 ".repeat(17)).unwrap().len(), 1);
    }

    #[test]
    fn refuses_the_rest() {
        for bad in ["", "\n", "1 2 3", "1 2 3 0 0 0 0 0 g", "\0", "123456789 2 3 0 0 0 0 0 0", "+1 2 3 0 0 0 0 0 0"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(parse("1 2 3 0 0 0 0 0 0\nx").unwrap_err().line, Some(2));
    }
}
