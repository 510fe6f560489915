//! Screens of recordings: golden files for two sizes in `tests/golden/screen`, and the pictures of the README.

use std::path::PathBuf;

use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use ringwise_recording::{Tape, events};
use ringwise_text::Style;
use ringwise_tui::{Key, Mode, View, draw, enter};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn golden(path: &str, got: &str) {
    ringwise_testkit::golden::compare(&root().join(path), got);
}

fn tape() -> Tape {
    Tape::open(&root().join("fixtures/watch/router16.rec")).unwrap()
}

fn style() -> Style {
    Style { color: true, ..Style::plain(Some(80)) }
}

/// The view at sample `at` of the recording, as it would be live.
fn at(at: usize, style: Style) -> View {
    let mut tape = tape();
    let mut v = View::new(tape.host(at), style, Mode::Live { recorded_to: None });
    enter(&mut v, &mut tape, at).unwrap();
    v
}

fn shot(v: &View, width: u16, height: u16) -> Buffer {
    let mut t = Terminal::new(TestBackend::new(width, height)).unwrap();
    t.draw(|f| draw(v, f.area(), f.buffer_mut())).unwrap();
    t.backend().buffer().clone()
}

fn rows(b: &Buffer) -> Vec<String> {
    let cells = b.content().chunks(usize::from(b.area().width));
    cells.map(|r| r.iter().map(|c| c.symbol()).collect::<String>().trim_end().to_string()).collect()
}

/// The text, followed by a letter for each cell with another style: red, yellow, bold, dim, reversed.
fn text(b: &Buffer) -> String {
    let mut out = rows(b).join("\n") + "\n--- red yellow Bold dim Inverse\n";
    for row in b.content().chunks(usize::from(b.area().width)) {
        let letters: String = row
            .iter()
            .map(|c| match (c.fg, c.modifier) {
                (Color::Red, _) => 'r',
                (Color::Yellow, _) => 'y',
                (_, m) if m.contains(Modifier::REVERSED) => 'I',
                (_, m) if m.contains(Modifier::BOLD) => 'B',
                (_, m) if m.contains(Modifier::DIM) => 'd',
                _ => ' ',
            })
            .collect();
        out += letters.trim_end();
        out.push('\n');
    }
    out
}

const SIZES: [(u16, u16); 2] = [(80, 24), (200, 60)];
/// Samples of the recording: a hot queue with losses; a CPU that went offline; fewer channels.
const LOSSY: usize = 1;
const SPREAD: usize = 15;
/// One CPU handles the interrupts of five queues.
const PICTURE: usize = 16;

fn find(what: &str) -> usize {
    let mut tape = tape();
    let last = tape.samples();
    let mut has = |i: usize| {
        let frame = tape.frame(i).unwrap();
        frame.is_some_and(|(_, events)| events.iter().any(|e| e.text.contains(what)))
    };
    (1..last).find(|i| has(*i)).unwrap_or_else(|| panic!("no remark with {what:?}"))
}

#[test]
fn goldens() {
    for (w, h) in SIZES {
        let mut cases = vec![
            ("lossy", at(LOSSY, style())),
            ("spread", at(SPREAD, style())),
            ("offline", at(find("went offline"), style())),
            ("channels", at(find("is gone"), style())),
            ("ascii", at(SPREAD, Style { ascii: true, color: false, ..style() })),
            ("begin", View::new("edge3", style(), Mode::Live { recorded_to: None })),
        ];
        let mut help = at(LOSSY, style());
        help.key(Key::Char('?'));
        help.mode = Mode::Replay { at: 1, of: 28, speed: 1.0 };
        cases.push(("help", help));
        let mut cpus = at(SPREAD, style());
        for k in
            [Key::Tab, Key::Char('s'), Key::Char('/'), Key::Char('n'), Key::Char('o'), Key::Char('d'), Key::Char('e')]
        {
            cpus.key(k);
        }
        cases.push(("cpus-filter", cpus));
        let mut all = at(SPREAD, style());
        for k in [Key::Char('a'), Key::Char('s'), Key::Down, Key::Down] {
            all.key(k);
        }
        cases.push(("all-queues", all));
        let mut past = at(find("is gone"), style());
        for k in [Key::Char('4'), Key::Down] {
            past.key(k);
        }
        cases.push(("history", past));
        for (name, v) in cases {
            golden(&format!("crates/tui/tests/golden/screen/{name}-{w}x{h}.txt"), &text(&shot(&v, w, h)));
        }
    }
}

/// `cargo xtask picture` rewrites them.
#[test]
fn pictures_of_the_readme() {
    for (w, h) in SIZES {
        let mut v = at(PICTURE, style());
        v.mode = Mode::Replay { at: PICTURE, of: tape().samples() - 1, speed: 1.0 };
        let svg = picture(&shot(&v, w, h));
        golden(&format!("docs/watch-{w}x{h}.svg"), &svg);
    }
}

#[test]
fn the_headline_names_the_place() {
    let v = at(LOSSY, style());
    let rows = rows(&shot(&v, 200, 60));
    let r = v.rates.as_ref().unwrap();
    let lost = r.links["mq0"].drops.nic.unwrap();
    assert!(lost > 0);
    let rate = ringwise_text::thousands((lost as f64 / r.seconds).ceil() as u64);
    assert!(rows[1].starts_with(&format!("LOST  {rate}/s mq0 NIC, no free descriptor")), "{}", rows[1]);
    assert!(rows[2].contains("CPU ") && rows[2].contains("<- irq"), "{}", rows[2]);
}

#[test]
fn any_size_and_any_key() {
    let mut v = at(SPREAD, style());
    let keys = [
        Key::Tab,
        Key::Char('s'),
        Key::Char('r'),
        Key::PageDown,
        Key::Char('a'),
        Key::Down,
        Key::Char('?'),
        Key::Up,
        Key::Char('/'),
        Key::Char('z'),
        Key::Enter,
        Key::BackTab,
        Key::Escape,
        Key::Char(' '),
        Key::Char('4'),
    ];
    let mut n = 0;
    for (w, h) in [(1, 1), (2, 3), (10, 2), (39, 7), (40, 10), (80, 12), (80, 24), (120, 33), (151, 34), (300, 100)] {
        for round in 0..keys.len() * 2 {
            v.key(keys[(n + round) % keys.len()]);
            let b = shot(&v, w, h);
            assert_eq!(b.area().width, w);
        }
        n += 7;
    }
    let empty = View::new("x", style(), Mode::Replay { at: 0, of: 0, speed: 1.0 });
    shot(&empty, 80, 24);
}

#[test]
fn only_ascii_and_no_colour_where_requested() {
    for what in ["went offline", "is gone"] {
        let mut v = at(find(what), Style { ascii: true, color: false, ..style() });
        for _ in 0..2 {
            for (w, h) in SIZES {
                for c in shot(&v, w, h).content() {
                    assert!(c.symbol().is_ascii(), "{:?}", c.symbol());
                    assert_eq!((c.fg, c.bg), (Color::Reset, Color::Reset));
                }
            }
            v.help = true;
        }
    }
}

#[test]
fn a_paused_screen_does_not_change_and_loses_nothing() {
    let mut tape = tape();
    let mut v = at(2, style());
    let before = shot(&v, 200, 60);
    v.key(Key::Char(' '));
    for i in 3..6 {
        let (r, e) = tape.frame(i).unwrap().unwrap();
        v.push(r, e);
    }
    let still = rows(&shot(&v, 200, 60));
    assert!(still[0].contains("PAUSED, 3 more"), "{}", still[0]);
    assert_eq!(still[3..], rows(&before)[3..]);
    v.key(Key::Char(' '));
    assert_eq!(text(&shot(&v, 200, 60)), text(&shot(&at(5, style()), 200, 60)));
}

/// While the curves have the focus, keys change the table from which their interface is chosen.
#[test]
fn the_history_is_of_an_interface_that_the_filter_lets_through() {
    let mut v = at(LOSSY, style());
    let first = v.link().unwrap().to_string();
    let other = v.links_shown().into_iter().find(|n| *n != first).unwrap().to_string();
    [Key::Char('4'), Key::Char('/')].into_iter().chain(other.chars().map(Key::Char)).for_each(|k| _ = v.key(k));
    let screen = rows(&shot(&v, 200, 60));
    assert!(screen.last().unwrap().contains(&format!("filter interfaces: {other}_")), "{screen:#?}");
    v.key(Key::Enter);
    assert_eq!((v.links_shown(), v.link()), (vec![other.as_str()], Some(other.as_str())));
    let screen = rows(&shot(&v, 200, 60)).join("\n");
    assert!(
        screen.contains(&format!("HISTORY of {other},")) && screen.contains(&format!("filter: {other}")),
        "{screen}"
    );
    assert!(!screen.lines().any(|l| l.contains("HISTORY") && l.contains("filter:")), "{screen}");
    // A filter without matches does not change the panels of one interface.
    v.choices[0].filter = "nosuch0".into();
    assert_eq!(v.link(), Some(first.as_str()));
    v.key(Key::Escape);
    assert_eq!(v.link(), Some(first.as_str()));
}

#[test]
fn nodes_of_two_digits_keep_their_distance() {
    let mut v = at(LOSSY, style());
    let rates = v.rates.as_mut().unwrap();
    let far = std::mem::take(&mut rates.cpus).into_iter().map(|(id, mut c)| {
        c.node = Some(ringwise_model::NodeId(10));
        (ringwise_model::CpuId(id.0 + 128), c)
    });
    rates.cpus = far.collect();
    let screen = rows(&shot(&v, 200, 60)).join("\n");
    assert!(screen.contains(" node 10 ·"), "{screen}");
}

#[test]
fn sought_back_is_as_it_was() {
    let mut tape = tape();
    let mut v = at(20, style());
    enter(&mut v, &mut tape, 4).unwrap();
    assert_eq!(text(&shot(&v, 80, 24)), text(&shot(&at(4, style()), 80, 24)));
    assert_eq!(tape.nearest(0).unwrap(), 1);
    assert_eq!(tape.nearest(9999).unwrap(), tape.samples() - 1);
    assert_eq!((tape.after(0), tape.after(u64::MAX)), (0, tape.samples()));
}

/// A reset, a wrap and an unplugged device: words instead of numbers.
#[test]
fn no_spikes() {
    use ringwise_observe::{Counters, Layout, LinkCounters, Rates};
    let link = |rx: u64, carrier: u64| LinkCounters {
        ifindex: 2,
        counts: [("rx_packets", rx), ("tx_packets", 5), ("carrier_changes", carrier)]
            .map(|(k, n)| (k.into(), n))
            .into(),
        ..LinkCounters::default()
    };
    let sample = |at_us, rx, carrier| Counters {
        at_us,
        links: [("eth1".to_string(), link(rx, carrier))].into(),
        ..Counters::default()
    };
    let gone = Counters { at_us: 4_000_000, ..Counters::default() };
    let all = [sample(1_000_000, 900, 7), sample(2_000_000, 1_000, u64::from(u32::MAX)), sample(3_000_000, 3, 1), gone];
    let mut v = View::new("edge3", style(), Mode::Live { recorded_to: None });
    let mut screens = Vec::new();
    for w in all.windows(2) {
        let r = Rates::between(&Layout::default(), &w[0], &w[1]).unwrap();
        let e = events(&w[0], &w[1], &r);
        v.push(r, e);
        screens.push(rows(&shot(&v, 200, 60)).join("\n"));
    }
    let pps = |screen: &str| {
        let row = screen.lines().find(|l| l.starts_with(">eth1"));
        row.and_then(|l| l.split_whitespace().nth(1)).map(str::to_string)
    };
    assert_eq!(pps(&screens[0]).as_deref(), Some("100"), "{}", screens[0]);
    assert!(screens[1].contains("eth1 was reset: rx_packets went backwards"), "{}", screens[1]);
    assert!(screens[1].contains("eth1 carrier_changes wrapped"), "{}", screens[1]);
    assert_eq!(pps(&screens[1]).as_deref(), Some("reset"), "{}", screens[1]);
    assert!(screens[2].contains("eth1 is gone"), "{}", screens[2]);
    for s in &screens {
        assert!(!s.contains("18,446,744"), "{s}");
    }
}

/// The buffer as a picture, in the colours of a dark terminal.
fn picture(b: &Buffer) -> String {
    use std::fmt::Write;
    let (w, h) = (b.area().width, b.area().height);
    let (cw, ch) = (8, 17);
    let (wide, high) = (usize::from(w) * cw + 16, usize::from(h) * ch + 16);
    let mut s = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" font-family=\"DejaVu Sans Mono, \
         ui-monospace, monospace\" font-size=\"13.29\">\n<rect width=\"100%\" height=\"100%\" fill=\"#16191d\"/>\n"
    );
    let fill = |c: &ratatui_core::buffer::Cell| match (c.fg, c.modifier.contains(Modifier::DIM)) {
        (Color::Red, _) => "#ff6b5e",
        (Color::Yellow, _) => "#e5c453",
        (_, true) => "#8a929c",
        _ => "#d8dde3",
    };
    for (y, row) in b.content().chunks(usize::from(w)).enumerate() {
        let top = 8 + y * ch;
        let reversed = row[0].modifier.contains(Modifier::REVERSED);
        if reversed {
            let _ = writeln!(s, "<rect x=\"0\" y=\"{top}\" width=\"{wide}\" height=\"{ch}\" fill=\"#3a424c\"/>");
        }
        let mut x = 0;
        while x < row.len() {
            let same = |c: &&ratatui_core::buffer::Cell| (c.fg, c.modifier) == (row[x].fg, row[x].modifier);
            let n = row[x..].iter().take_while(same).count();
            let run: String = row[x..x + n].iter().map(|c| c.symbol()).collect();
            let bold = if row[x].modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            // Place each piece of text separately, because fonts differ in width.
            let mut at = 0;
            for piece in run.split("  ") {
                let blanks = piece.chars().take_while(|c| *c == ' ').count();
                let text = piece.trim();
                if !text.is_empty() {
                    let text = text.replace('&', "&amp;").replace('<', "&lt;");
                    let left = 8 + (x + at + blanks) * cw;
                    let (y, colour) = (top + 13, fill(&row[x]));
                    let _ = writeln!(s, "<text x=\"{left}\" y=\"{y}\" fill=\"{colour}\"{bold}>{text}</text>");
                }
                at += piece.chars().count() + 2;
            }
            x += n;
        }
    }
    s + "</svg>\n"
}
