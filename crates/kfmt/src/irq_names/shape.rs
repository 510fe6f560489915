//! Matching a name against a form of the table, anchored at both ends.

use super::NameContext;

/// Numbers taken from a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ShapeMatch {
    pub n: Option<u32>,
    pub m: Option<u32>,
}

/// Which device the placeholders may name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameOwner {
    /// This device's name and address.
    Ours,
    /// Anything of the right form.
    Anybody,
}

/// Whether `name` has the form `shape`, with this device's own name or address.
pub(super) fn matches(shape: &str, name: &str, ctx: &NameContext) -> Option<ShapeMatch> {
    walk(shape, name, ctx, NameOwner::Ours, ShapeMatch::default())
}

/// Whether `name` has the form `shape`, but with the name or address of another device. A form that is only a name
/// proves nothing.
pub(super) fn matches_another_device(shape: &str, name: &str, ctx: &NameContext) -> bool {
    let named = ["{if", "{bdf}", "{virtio}"].iter().any(|p| shape.contains(p))
        || shape.contains("{vif}") && ctx.bus_address.is_some();
    let bare = shape.starts_with('{') && shape.ends_with('}') && shape.matches('{').count() == 1;
    named && !bare && walk(shape, name, ctx, NameOwner::Anybody, ShapeMatch::default()).is_some()
}

/// `eth1-sq-0` could be vector 0 of an interface `eth1-sq`, but more likely is one of eth1 in a form
/// that is not in the table.
pub(super) fn starts_with_own_name(name: &str, ctx: &NameContext) -> bool {
    names(ctx).any(|own| name.strip_prefix(own).is_some_and(|rest| rest.starts_with('-')))
}

fn walk(shape: &str, name: &str, ctx: &NameContext, whose: NameOwner, found: ShapeMatch) -> Option<ShapeMatch> {
    let Some(open) = shape.find('{') else {
        return (shape == name).then_some(found);
    };
    let rest = name.strip_prefix(&shape[..open])?;
    let close = open + shape[open..].find('}')?;
    let after = &shape[close + 1..];
    let next = |rest: &str, found| walk(after, rest, ctx, whose, found);
    match &shape[open + 1..close] {
        "n" => number(rest).and_then(|(n, rest)| next(rest, ShapeMatch { n: Some(n), ..found })),
        "m" => number(rest).and_then(|(m, rest)| next(rest, ShapeMatch { m: Some(m), ..found })),
        // Any rest; only at the end of a form.
        "*" => Some(found),
        kind if whose == NameOwner::Anybody => anybody(kind, rest, next, found),
        "if" => names(ctx).find_map(|own| next(rest.strip_prefix(own)?, found)),
        kind if kind.starts_with("if") => {
            let bytes = kind[2..].parse().ok()?;
            names(ctx).find_map(|own| next(rest.strip_prefix(cut(own, bytes))?, found))
        }
        // The device `vif-0` has the name `vif0` in interrupt names.
        "vif" => {
            let id = ctx.bus_address?.strip_prefix("vif-")?;
            next(rest.strip_prefix("vif")?.strip_prefix(id)?, found)
        }
        "bdf" => match ctx.bus_address {
            Some(own) => next(rest.strip_prefix(own)?, found),
            // The address is unknown in captures without device links; then any address matches.
            None => anybody("bdf", rest, next, found),
        },
        "virtio" => next(rest.strip_prefix(ctx.virtio_name?)?, found),
        _ => None,
    }
}

/// A run of plausible characters: the shortest with which the rest matches.
fn anybody(
    kind: &str,
    rest: &str,
    next: impl Fn(&str, ShapeMatch) -> Option<ShapeMatch>,
    found: ShapeMatch,
) -> Option<ShapeMatch> {
    let longest = match kind {
        // IFNAMSIZ without the NUL.
        kind if kind.starts_with("if") => 15,
        _ => 64,
    };
    if matches!(kind, "virtio" | "vif") && !rest.starts_with(kind) {
        return None;
    }
    let plausible = |c: char| match kind {
        "bdf" => c.is_ascii_alphanumeric() || matches!(c, ':' | '.' | '-' | '_'),
        _ => !c.is_whitespace() && !matches!(c, ':' | '/' | '@'),
    };
    for (at, c) in rest.char_indices().take(longest) {
        if !plausible(c) {
            return None;
        }
        if let Some(f) = next(&rest[at + c.len_utf8()..], found) {
            return Some(f);
        }
    }
    None
}

fn names<'a>(ctx: &NameContext<'a>) -> impl Iterator<Item = &'a str> {
    std::iter::once(ctx.ifname).chain(ctx.other_names.iter().copied()).filter(|n| !n.is_empty())
}

fn cut(name: &str, bytes: usize) -> &str {
    name.get(..bytes).unwrap_or(name)
}

/// A decimal number without leading zeros, as `%d` prints it.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    if number.len() > 1 && number.starts_with('0') {
        return None;
    }
    Some((number.parse().ok()?, rest))
}
