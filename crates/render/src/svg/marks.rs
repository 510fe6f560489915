//! Colours and dashes of lines, which the legend explains.

use ringwise_draw::canvas::{Canvas, Font, PAGE, Point};

pub(super) const NEAR: &str = "#0072b2";
pub(super) const FAR: &str = "#c8500a";
/// A CPU or core with more queues than others.
pub(super) const CROWDED: &str = "#b42318";
pub(super) const CROWDED_FILL: &str = "#fbe3e0";
/// Width of a line that stands for several interrupts.
pub(super) const BUNDLE: f64 = 3.0;
/// The verdict, if nothing is wrong.
pub(super) const FINE: &str = "#1a6b3c";
pub(super) const UNSURE: &str = "#5b6472";
pub(super) const XPS: &str = "#7a4fa3";
pub(super) const RPS: &str = "#0b7a55";
pub(super) const XPS_DASH: &str = "5 3";
pub(super) const RPS_DASH: &str = "1.5 2.5";
pub(super) const FAR_DASH: &str = "10 3";

/// Marks a line to another node, for people who cannot see the colour.
pub(super) fn badge(c: &mut Canvas, p: Point) {
    c.dot(p, 7.0, FAR);
    c.text(p, "!", &Font::left(11.0, PAGE).bold().middle());
}
