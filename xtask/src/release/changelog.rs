//! The headings of `CHANGELOG.md`: `## Unreleased`, `## 1.2.3 (unreleased)`, `## 1.2.3 (2026-11-25)`, the newest first.

use thiserror::Error;

use super::version::Version;

/// A heading of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heading {
    /// Index of its line.
    line: usize,
    /// None: `## Unreleased`.
    pub(crate) version: Option<Version>,
    /// None: not released yet.
    pub(crate) date: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ChangelogError {
    #[error("no heading; expected for example \"## Unreleased\"")]
    NoHeading,
    #[error(
        "line {line}: {found:?}; expected \"## Unreleased\", \"## 1.2.3 (unreleased)\" or \"## 1.2.3 (2026-11-25)\""
    )]
    Heading { line: usize, found: String },
    #[error("{newer} is below {older}; expected the newest version first")]
    Order { newer: Version, older: Version },
    #[error("line {line}: only the newest version can be unreleased")]
    OldUnreleased { line: usize },
    #[error("the newest heading is {newest} ({date}); expected \"## Unreleased\" above it, with the changes")]
    NothingUnreleased { newest: Version, date: String },
    #[error("the newest heading has no changes below it")]
    NoChanges,
    #[error("{version} is not above {released}, which is released")]
    NotAbove { version: Version, released: Version },
}

/// All headings of versions.
///
/// Errors: a heading of another form, wrong order, no heading.
pub(crate) fn headings(text: &str) -> Result<Vec<Heading>, ChangelogError> {
    let mut out: Vec<Heading> = Vec::new();
    for (line, heading) in text.lines().enumerate().filter_map(|(n, l)| Some((n, l.strip_prefix("## ")?))) {
        let h = parse(line, heading)
            .ok_or_else(|| ChangelogError::Heading { line: line + 1, found: format!("## {heading}") })?;
        if !out.is_empty() && h.date.is_none() {
            return Err(ChangelogError::OldUnreleased { line: line + 1 });
        }
        if let (Some(newer), Some(older)) = (out.last().and_then(|l| l.version), h.version)
            && newer <= older
        {
            return Err(ChangelogError::Order { newer, older });
        }
        out.push(h);
    }
    if out.is_empty() { Err(ChangelogError::NoHeading) } else { Ok(out) }
}

fn parse(line: usize, heading: &str) -> Option<Heading> {
    if heading == "Unreleased" {
        return Some(Heading { line, version: None, date: None });
    }
    let (version, rest) = heading.split_once(" (")?;
    let date = rest.strip_suffix(')')?;
    let date = match date {
        "unreleased" => None,
        _ if is_date(date) => Some(date.to_string()),
        _ => return None,
    };
    Some(Heading { line, version: Some(version.parse().ok()?), date })
}

/// `YYYY-MM-DD`.
fn is_date(text: &str) -> bool {
    let number = |part: &str, digits: usize| {
        let is_plain = part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        is_plain.then(|| part.parse::<u32>().ok()).flatten()
    };
    let mut parts = text.splitn(3, '-');
    let mut next = |digits| parts.next().and_then(|p| number(p, digits));
    let (year, month, day) = (next(4), next(2), next(2));
    year.is_some() && month.is_some_and(|m| (1..=12).contains(&m)) && day.is_some_and(|d| (1..=31).contains(&d))
}

/// The text with `version` and `date` as its newest heading, which was unreleased.
///
/// Errors: nothing is unreleased, no changes, a version that is not above the newest released one.
pub(crate) fn release(text: &str, version: Version, date: &str) -> Result<String, ChangelogError> {
    let all = headings(text)?;
    let newest = all.first().ok_or(ChangelogError::NoHeading)?;
    if let (Some(newest), Some(date)) = (newest.version, &newest.date) {
        return Err(ChangelogError::NothingUnreleased { newest, date: date.clone() });
    }
    if let Some(released) = all.get(1).and_then(|h| h.version)
        && version <= released
    {
        return Err(ChangelogError::NotAbove { version, released });
    }
    let end = all.get(1).map_or(usize::MAX, |h| h.line);
    let below = text.lines().enumerate().filter(|(n, _)| (newest.line + 1..end).contains(n));
    if below.map(|(_, l)| l).all(|l| l.trim().is_empty() || l.starts_with('#')) {
        return Err(ChangelogError::NoChanges);
    }
    let heading = format!("## {version} ({date})");
    let lines = text.lines().enumerate().map(|(n, l)| if n == newest.line { &heading } else { l });
    Ok(lines.flat_map(|l| [l, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    fn v(text: &str) -> Version {
        text.parse().unwrap()
    }

    const OLD: &str = "## 0.1.0 (2026-11-23)\n\nThe first version.\n";

    fn with(heading: &str) -> String {
        format!("# Changes\n\n{heading}\n\n### Added\n\n- A feature.\n\n{OLD}")
    }

    #[test]
    fn headings_with_versions_and_dates() {
        let all = headings(&with("## 0.2.0 (unreleased)")).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].version, all[0].date.as_deref()), (Some(v("0.2.0")), None));
        assert_eq!((all[1].version, all[1].date.as_deref()), (Some(v("0.1.0")), Some("2026-11-23")));
        assert_eq!(headings(&with("## Unreleased")).unwrap()[0].version, None);
    }

    #[test]
    fn headings_of_another_form_are_errors() {
        for heading in ["## 0.2", "## 0.2.0", "## 0.2.0 (soon)", "## 0.2.0 (2026-13-01)", "## 0.2.0 (26-1-1)", "## New"]
        {
            let wrong = ChangelogError::Heading { line: 3, found: heading.into() };
            assert_eq!(headings(&with(heading)), Err(wrong), "{heading}");
        }
        assert_eq!(headings("# Changes\n"), Err(ChangelogError::NoHeading));
        let order = ChangelogError::Order { newer: v("0.1.0"), older: v("0.1.0") };
        assert_eq!(headings(&with("## 0.1.0 (2026-11-24)")), Err(order));
        let two = with("## Unreleased").replace(OLD, "## 0.1.0 (unreleased)\n");
        assert_eq!(headings(&two), Err(ChangelogError::OldUnreleased { line: 9 }));
    }

    #[test]
    fn a_release_gets_version_and_date() {
        for heading in ["## Unreleased", "## 0.2.0 (unreleased)"] {
            assert_eq!(release(&with(heading), v("0.2.0"), "2026-12-01").unwrap(), with("## 0.2.0 (2026-12-01)"));
        }
        assert_eq!(
            release(&with("## 0.2.0 (unreleased)"), v("1.0.0"), "2026-12-01").unwrap(),
            with("## 1.0.0 (2026-12-01)")
        );
    }

    #[test]
    fn what_cannot_be_released() {
        let not = |text: &str, version| release(text, v(version), "2026-12-01").unwrap_err();
        let above = |version| ChangelogError::NotAbove { version: v(version), released: v("0.1.0") };
        assert_eq!(not(&with("## Unreleased"), "0.1.0"), above("0.1.0"));
        assert_eq!(not(&with("## Unreleased"), "0.0.9"), above("0.0.9"));
        let nothing = ChangelogError::NothingUnreleased { newest: v("0.1.0"), date: "2026-11-23".into() };
        assert_eq!(not(OLD, "0.2.0"), nothing);
        assert_eq!(not(&format!("## Unreleased\n\n### Added\n\n{OLD}"), "0.2.0"), ChangelogError::NoChanges);
    }

    #[test]
    fn the_changelog_of_the_project_is_read() {
        let text = std::fs::read_to_string(paths::root().join("CHANGELOG.md")).unwrap();
        let all = headings(&text).unwrap();
        assert_eq!(all.last().unwrap().version, Some(v("0.1.0")));
    }
}
