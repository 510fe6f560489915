//! Draws pictures as SVG text: the diagrams of a host, and the figures of a measurement.
//!
//! A [`canvas::Canvas`] collects shapes and texts and tracks their extent; [`document`] makes a file of it. [`chart`]
//! draws lines and bars over an [`axis`], with the colours, markers and whiskers of [`plot`]. Lengths are CSS pixels.
//! The same values always give the same bytes.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod axis;
pub mod canvas;
pub mod chart;
mod outlier;
pub mod plot;

use canvas::{Canvas, PAGE, num};
use ringwise_model::words::xml;

/// Font of diagrams, where text must line up in columns.
pub const MONO: &str = "DejaVu Sans Mono, Menlo, Consolas, monospace";
/// Font of figures.
pub const SANS: &str = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";

/// Width and height of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Size {
    /// Width.
    pub w: f64,
    /// Height.
    pub h: f64,
}

/// A complete SVG document. Viewers show `title`, and screen readers read it aloud.
pub fn document(c: Canvas, size: Size, title: &str, font: &str) -> String {
    let (w, h) = (num(size.w), num(size.h));
    let body = c.body();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         font-family=\"{font}\">\n<title>{}</title>\n\
         <rect x=\"0\" y=\"0\" width=\"{w}\" height=\"{h}\" fill=\"{PAGE}\"/>\n{body}</svg>\n",
        xml(title),
    )
}
