//! The state of the screen: the newest interval, earlier ones, and the choices of the user.

use std::collections::{BTreeMap, VecDeque};

use ringwise_observe::{Bottleneck, Rates};

use super::history::History;
use super::keys::{Key, LoopAction};
use ringwise_recording::Event;
use ringwise_text::Style;

/// The sort orders of each panel; the first one is the default.
pub(super) const SORTS: [&[&str]; 4] = [
    &["name", "packets", "drops"],
    &["number", "packets", "drops", "cpu"],
    &["busy", "number", "packets", "drops"],
    &[""],
];

/// How many events are kept.
const REMARKS: usize = 100;
/// How many intervals are held back while the screen is paused.
const WAITING: usize = 600;

/// Parts of the screen that can have the focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    /// The table of interfaces.
    Links,
    /// The table of queues.
    Queues,
    /// The table of CPUs.
    Cpus,
    /// The curves of one interface.
    Past,
}

pub(super) const PANELS: [Panel; 4] = [Panel::Links, Panel::Queues, Panel::Cpus, Panel::Past];

/// Where the intervals come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// This host.
    Live {
        /// The file of `--record`.
        recorded_to: Option<String>,
    },
    /// A recording.
    Replay {
        /// The sample on the screen, from 1.
        at: usize,
        /// The last sample; sample 0 has no interval.
        of: usize,
        /// How many times faster than recorded.
        speed: f64,
    },
}

/// The user's choices for one panel.
#[derive(Debug, Clone, Default)]
pub struct PanelChoice {
    /// Index of the sort order among those of the panel; 0 is the default.
    pub sort: usize,
    /// Rows are in the opposite order.
    pub backwards: bool,
    /// Words that a row must contain; empty: all rows are shown.
    pub filter: String,
    /// First row that is shown.
    pub from: usize,
}

/// The state of the full screen. [`draw`](crate::draw) makes the screen from it.
#[derive(Debug, Clone)]
pub struct View {
    /// Name of the host.
    pub host: String,
    /// Colours, ASCII and time zone.
    pub style: Style,
    /// Where the intervals come from.
    pub mode: Mode,
    /// The interval on the screen; `None` before the first one.
    pub rates: Option<Rates>,
    /// Losses, busiest CPU and full links of `rates`.
    pub bottleneck: Bottleneck,
    /// Earlier intervals.
    pub history: History,
    /// Resets, interfaces that appeared, and other events, the newest last.
    pub remarks: VecDeque<Event>,
    /// Resets of each interface since the view began.
    pub resets: BTreeMap<String, u64>,
    /// CPU time of the last sample, and the share of one CPU that all samples used, as text.
    pub cost: Option<String>,
    /// What cannot be read, one text each.
    pub unread: Vec<String>,
    /// The screen is paused; new intervals are held back.
    pub paused: bool,
    waiting: VecDeque<(Rates, Vec<Event>)>,
    /// The panel that receives keys.
    pub focus: Panel,
    /// The choices of each panel, in the order of [`Panel`].
    pub choices: [PanelChoice; 4],
    /// The interface whose queues are shown; `None`: the interface of the bottleneck.
    pub picked: Option<String>,
    /// Show queues of all interfaces.
    pub all: bool,
    /// The user is typing a filter.
    pub typing: bool,
    /// The help page is shown.
    pub help: bool,
}

impl View {
    /// A view without any interval.
    pub fn new(host: &str, style: Style, mode: Mode) -> Self {
        Self {
            host: host.into(),
            style,
            mode,
            rates: None,
            bottleneck: Bottleneck::default(),
            history: History::default(),
            remarks: VecDeque::new(),
            resets: BTreeMap::new(),
            cost: None,
            unread: Vec::new(),
            paused: false,
            waiting: VecDeque::new(),
            focus: Panel::Queues,
            choices: Default::default(),
            picked: None,
            all: false,
            typing: false,
            help: false,
        }
    }

    /// Adds an interval. While paused, it is held back.
    pub fn push(&mut self, rates: Rates, events: Vec<Event>) {
        if self.paused {
            self.waiting.push_back((rates, events));
            if self.waiting.len() > WAITING {
                self.waiting.pop_front();
            }
            return;
        }
        self.take(rates, events);
    }

    /// Shows an interval, also while paused.
    pub fn take(&mut self, rates: Rates, events: Vec<Event>) {
        self.history.push(&rates);
        for (name, l) in &rates.links {
            if !l.reset.is_empty() {
                *self.resets.entry(name.clone()).or_default() += 1;
            }
        }
        self.remarks.extend(events);
        self.remarks.drain(..self.remarks.len().saturating_sub(REMARKS));
        self.bottleneck = Bottleneck::of(&rates);
        self.rates = Some(rates);
    }

    /// The number of intervals that are held back because the screen is paused.
    pub fn held(&self) -> usize {
        self.waiting.len()
    }

    /// Clears what was shown, because another part of a recording follows.
    pub fn forget(&mut self) {
        self.history.clear();
        self.remarks.clear();
        self.resets.clear();
        self.waiting.clear();
        (self.rates, self.bottleneck) = (None, Bottleneck::default());
    }

    /// Sort order, filter and position of a panel.
    pub fn choice(&self, p: Panel) -> &PanelChoice {
        &self.choices[p as usize]
    }

    /// The panel whose order and filter the keys change. The curves show one interface, so for them it is the table of
    /// interfaces.
    pub fn listed(&self) -> Panel {
        if self.focus == Panel::Past { Panel::Links } else { self.focus }
    }

    fn chosen(&mut self) -> &mut PanelChoice {
        &mut self.choices[self.listed() as usize]
    }

    /// The interface whose queues and curves are shown. It passes the filter of interfaces, if any interface does.
    pub fn link(&self) -> Option<&str> {
        let r = self.rates.as_ref()?;
        let shown = self.links_shown();
        let passes = |n: &String| shown.is_empty() || shown.contains(&n.as_str());
        let there = |n: &&String| r.links.contains_key(*n) && passes(n);
        let hot = || self.bottleneck.busiest.as_ref()?.queue.as_ref().map(|q| &q.link);
        let lossy = || {
            let loss = r.links.iter().filter(|(n, _)| passes(n));
            let loss = loss.filter_map(|(n, l)| Some((l.drops.total().filter(|d| *d > 0)?, n)));
            loss.max_by_key(|(d, _)| *d).map(|(_, n)| n)
        };
        let busiest = || r.links.iter().filter(|(n, _)| passes(n)).max_by_key(|(_, l)| l.rx.packets).map(|(n, _)| n);
        let name = self.picked.as_ref().filter(there).or_else(lossy).or_else(hot).filter(there).or_else(busiest)?;
        Some(name)
    }

    /// Handles a key, and returns what the loop has to do.
    pub fn key(&mut self, key: Key) -> LoopAction {
        if self.typing {
            self.typed(key);
            return LoopAction::Nothing;
        }
        if self.help {
            self.help = false;
            return if key == Key::Char('q') { LoopAction::Quit } else { LoopAction::Nothing };
        }
        let replayed = matches!(self.mode, Mode::Replay { .. });
        match key {
            Key::Char('q') => return LoopAction::Quit,
            Key::Redraw => return LoopAction::Redraw,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char(' ' | 'p') => self.pause(),
            Key::Char('/') => self.typing = true,
            Key::Char('s') => {
                let sorts = SORTS[self.listed() as usize].len();
                let c = self.chosen();
                c.sort = (c.sort + 1) % sorts;
            }
            Key::Char('r') => {
                let c = self.chosen();
                c.backwards = !c.backwards;
            }
            Key::Char('a') => self.all = !self.all,
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(PANELS.len() - 1),
            Key::Char(n @ '1'..='4') => self.focus = PANELS[n as usize - '1' as usize],
            Key::Escape => {
                self.chosen().filter.clear();
                self.picked = None;
            }
            Key::Up | Key::Char('k') => self.scroll(-1),
            Key::Down | Key::Char('j') => self.scroll(1),
            Key::PageUp => self.scroll(-10),
            Key::PageDown => self.scroll(10),
            Key::Left if replayed => return LoopAction::Seek(-1),
            Key::Right if replayed => return LoopAction::Seek(1),
            Key::Char('[' | '<') if replayed => return LoopAction::Seek(-10),
            Key::Char(']' | '>') if replayed => return LoopAction::Seek(10),
            Key::Home | Key::Char('g') if replayed => return LoopAction::First,
            Key::End | Key::Char('G') if replayed => return LoopAction::Last,
            Key::Char('+' | '=') if replayed => return LoopAction::Faster,
            Key::Char('-') if replayed => return LoopAction::Slower,
            _ => {}
        }
        LoopAction::Nothing
    }

    fn typed(&mut self, key: Key) {
        self.typing = !matches!(key, Key::Enter | Key::Escape);
        let c = self.chosen();
        match key {
            Key::Escape => c.filter.clear(),
            Key::Backspace => drop(c.filter.pop()),
            Key::Char(ch) if !ch.is_control() && c.filter.len() < 60 => c.filter.push(ch),
            _ => {}
        }
        c.from = 0;
    }

    fn pause(&mut self) {
        self.paused = !self.paused;
        if !self.paused {
            for (rates, events) in std::mem::take(&mut self.waiting) {
                self.take(rates, events);
            }
        }
    }

    fn turn(&mut self, by: usize) {
        self.focus = PANELS[(self.focus as usize + by) % PANELS.len()];
    }

    /// In the table of interfaces this moves the choice; in other panels it scrolls the rows.
    fn scroll(&mut self, by: isize) {
        let names: Vec<String> = self.links_shown().into_iter().map(str::to_string).collect();
        if matches!(self.focus, Panel::Links | Panel::Past) {
            let at = self.link().and_then(|l| names.iter().position(|n| n == l)).unwrap_or(0);
            self.picked = names.get(at.saturating_add_signed(by).min(names.len().saturating_sub(1))).cloned();
            return;
        }
        let rows = match self.focus {
            Panel::Queues => self.queues_shown().len(),
            _ => self.cpus_shown().len(),
        };
        let c = &mut self.choices[self.focus as usize];
        c.from = c.from.saturating_add_signed(by).min(rows.saturating_sub(1));
    }
}
