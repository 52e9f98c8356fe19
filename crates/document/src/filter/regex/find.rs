//! Where a regular expression matches, and what its groups captured: for the expressions that tell.

use super::{build, check, runaway};
use crate::error::Result;

/// One match: byte offsets of the whole and of each group.
pub struct RegexMatch {
    pub start: usize,
    pub end: usize,
    pub groups: Vec<Option<(usize, usize)>>,
}

/// A regular expression that finds.
#[derive(Debug)]
pub struct Finder(pcre2::bytes::Regex);

impl Finder {
    pub fn compile(pattern: &str, options: &str) -> Result<Finder> {
        check(pattern, options)?;
        // The plain matcher: its need of stack is bounded by the match limit alone.
        build(pattern, options, false).map(Finder)
    }

    /// The first match that begins at byte `from` or later.
    pub fn find_at(&self, text: &str, from: usize) -> Result<Option<RegexMatch>> {
        let mut places = self.0.capture_locations();
        let whole = self.0.captures_read_at(&mut places, text.as_bytes(), from).map_err(|error| runaway(&error))?;
        Ok(whole.map(|whole| RegexMatch {
            start: whole.start(),
            end: whole.end(),
            groups: (1..places.len()).map(|group| places.get(group)).collect(),
        }))
    }
}
