//! Network functions without an interface in this network namespace, below the table of interfaces.

use ringwise_model::words::one_line;
use ringwise_model::{CpuSet, Fact, FunctionWithoutInterface, Snapshot};
use ringwise_text::{Style, hang, plural};

const HEAD: &str = "no interface here: ";
/// Functions that are listed without `-v`: a host may have moved dozens of virtual functions into containers.
const FEW: usize = 4;

/// One paragraph for each function, and how to tune them. Empty if there are none.
pub(crate) fn lines(s: &Snapshot, style: &Style) -> String {
    let all = &s.without_interface;
    let limit = if style.width.is_none() || style.verbose > 0 { usize::MAX } else { FEW };
    let mut texts: Vec<String> = all.iter().take(limit).map(function).collect();
    if all.len() > texts.len() {
        texts.push(format!("{} more (-v)", all.len() - texts.len()));
    }
    if all.iter().any(|f| f.in_other_namespace) {
        texts.push("ringwise does not tune other namespaces from here: ip netns exec NAMESPACE ringwise show".into());
    }
    let indent = " ".repeat(HEAD.len());
    texts.iter().enumerate().map(|(i, t)| hang(if i == 0 { HEAD } else { &indent }, t, style.width)).collect()
}

fn function(f: &FunctionWithoutInterface) -> String {
    let place = if f.in_other_namespace { ", in another network namespace" } else { "" };
    format!("{} ({}{place}): {}", one_line(&f.bus_address), one_line(&f.driver), interrupts(f))
}

fn interrupts(f: &FunctionWithoutInterface) -> String {
    if let Fact::Unknown(u) = &f.vectors {
        return format!("its interrupts are unknown ({})", u.why);
    }
    let count = f.traffic_vectors().count();
    let Some(first) = f.traffic_vectors().find_map(|v| v.names.first()) else {
        return "no interrupt of its queues is in use".into();
    };
    let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
    let cpus = f.traffic_vectors().filter_map(|v| v.cpus.known()).fold(CpuSet::new(), |all, c| all.union(c));
    let place = match cpus.len() {
        0 => "CPU unknown".to_string(),
        1 => format!("on CPU {cpus}"),
        _ => format!("on CPUs {cpus}"),
    };
    format!("{} ({}{more}) {place}", plural(count, "interrupt"), one_line(first))
}

#[cfg(test)]
mod tests {
    use ringwise_model::{FunctionVector, IrqId, Role};
    use ringwise_testkit::machines::host;
    use ringwise_testkit::topo::CpuSpec;

    use super::*;

    fn vector(irq: u32, name: &str, role: Role, cpu: &str) -> FunctionVector {
        let cpus = Fact::Known(cpu.parse().unwrap());
        FunctionVector { irq: IrqId(irq), names: vec![name.into()], role, cpus }
    }

    fn with(vectors: Fact<Vec<FunctionVector>>, in_other_namespace: bool) -> FunctionWithoutInterface {
        let (bus_address, driver) = ("0000:05:00.0".into(), "igb".into());
        FunctionWithoutInterface { bus_address, driver, in_other_namespace, vectors }
    }

    #[test]
    fn interrupts_in_short_form() {
        let queue = |q: u32| Role::Queues { rx: vec![q], tx: vec![q] };
        let all = vec![
            vector(40, "eth5", Role::Control, "7"),
            vector(41, "eth5-TxRx-0", queue(0), "2"),
            vector(42, "eth5-TxRx-1", queue(1), "3"),
        ];
        let mut s = host("edge3", CpuSpec::flat(8, 1), vec![]).snapshot();
        assert_eq!(lines(&s, &Style::plain(None)), "");
        s.without_interface = vec![
            with(Fact::Known(all), true),
            with(Fact::Known(Vec::new()), true),
            with(Fact::unknown("msi_irqs", "needs root"), false),
        ];
        assert_eq!(
            lines(&s, &Style::plain(None)),
            "\
no interface here: 0000:05:00.0 (igb, in another network namespace): 2 interrupts (eth5-TxRx-0 and 1 more) on CPUs 2-3
                   0000:05:00.0 (igb, in another network namespace): no interrupt of its queues is in use
                   0000:05:00.0 (igb): its interrupts are unknown (needs root)
                   ringwise does not tune other namespaces from here: ip netns exec NAMESPACE ringwise show
"
        );
        s.without_interface = vec![with(Fact::Known(Vec::new()), false); FEW + 2];
        let short = lines(&s, &Style::plain(Some(80)));
        assert_eq!(short.lines().last().map(str::trim), Some("2 more (-v)"));
    }
}
