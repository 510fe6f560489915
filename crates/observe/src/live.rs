//! Reads counters repeatedly while interfaces, queues and vectors come and go.

use ringwise_sys::Host;

use crate::counters::{Counters, LinkCounters};
use crate::layout::Layout;
use crate::sampler::Sampler;

/// Reads the layout of these interfaces; `None`: they do not answer at the moment.
type ReadLayout<'a> = Box<dyn FnMut(&[String]) -> Option<Layout> + 'a>;

/// Reads counters along a layout, and reads the layout again when it is stale.
pub struct LiveCounters<'a> {
    host: &'a dyn Host,
    devs: Vec<String>,
    read_layout: ReadLayout<'a>,
    layout: Layout,
    sampler: Sampler,
    names: Vec<String>,
    before: Option<Counters>,
}

impl<'a> LiveCounters<'a> {
    /// Watches `devs`; if this is empty, all interfaces with queues of their own. `layout`: their present layout.
    /// `read_layout` reads it again for those of `devs` that exist; `None`: they do not answer at the moment. `detail`: see
    /// [`Sampler::new`].
    pub fn new(
        host: &'a dyn Host,
        devs: &[String],
        layout: Layout,
        detail: bool,
        read_layout: impl FnMut(&[String]) -> Option<Layout> + 'a,
    ) -> Self {
        let sampler = Sampler::new(host, &layout, detail);
        let (devs, read_layout, names) = (devs.to_vec(), Box::new(read_layout), interfaces(host));
        Self { host, devs, read_layout, layout, sampler, names, before: None }
    }

    /// The layout of the counters that were read last.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Reads the counters. Afterwards [`Self::layout`] returns the layout that belongs to them.
    pub fn read(&mut self) -> Counters {
        let mut now = self.sampler.read(self.host);
        let there = interfaces(self.host);
        let changed = there != self.names || self.before.as_ref().is_some_and(|b| stale(b, &now));
        self.names = there;
        // Devices that are being changed may not answer; the known layout stays.
        if changed
            && let Some(layout) = self.read_again()
            && layout != self.layout
        {
            self.layout = layout;
            self.sampler.follow(&self.layout);
            now = self.sampler.read(self.host);
        }
        self.before = Some(now.clone());
        now
    }

    /// Reads the layout of those named interfaces that exist now.
    fn read_again(&mut self) -> Option<Layout> {
        let there: Vec<String> = self.devs.iter().filter(|d| self.names.contains(d)).cloned().collect();
        if there.is_empty() && !self.devs.is_empty() {
            return None;
        }
        (self.read_layout)(&there)
    }
}

/// Names in `/sys/class/net`, sorted; empty if the directory cannot be listed.
pub fn interfaces(host: &dyn Host) -> Vec<String> {
    let mut names = host.list("/sys/class/net").unwrap_or_default();
    names.sort();
    names
}

/// Whether queues, vectors, NAPI threads or links differ from those of the sample before.
pub fn stale(before: &Counters, now: &Counters) -> bool {
    // An interface that does not answer cannot be read again either.
    if !now.silent.is_empty() {
        return false;
    }
    let same = before.links.len() == now.links.len()
        && before.irqs.keys().eq(now.irqs.keys())
        && before.threads_ns.keys().eq(now.threads_ns.keys())
        && before.links.iter().zip(&now.links).all(|((n, b), (m, a))| {
            let carrier = |l: &LinkCounters| l.counts.get("carrier_changes").copied();
            n == m
                && b.ifindex == a.ifindex
                && b.rx.keys().eq(a.rx.keys())
                && b.tx.keys().eq(a.tx.keys())
                && carrier(b) == carrier(a)
        });
    !same
}
