//! Where a pipeline may search by `$text`, and where it may read the score: a search comes first, and a score needs one.

use super::{Parsed, Parser, Role, Within};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::text::carried;

/// What is seen of the search while the stages of one pipeline are parsed.
pub(super) struct TextSearch {
    /// Whether the pipeline around this one reads the score.
    outer: bool,
    is_first: bool,
    /// Whether documents of another collection, which have no score, have come in.
    united: bool,
}

impl TextSearch {
    pub(super) fn enter(parser: &mut Parser<'_>) -> TextSearch {
        TextSearch { outer: parser.names.take_reads_score(), is_first: false, united: false }
    }

    /// Looks at a stage that was just parsed.
    pub(super) fn look_at(&mut self, at: usize, parsed: &Parsed, parser: &Parser<'_>) -> Result<()> {
        let Parsed::One(stage) = parsed else { return Ok(()) };
        if matches!(stage.role(), Role::Match(stage) if stage.filter.has_text()) {
            match (at, parser.within) {
                (_, Within::Facet) => return Err(carried::unavailable()),
                (0, _) => self.is_first = true,
                _ => return Err(not_first()),
            }
        }
        if self.united && parser.names.reads_score() {
            return Err(later(carried::unavailable()));
        }
        self.united |= stage.name() == "$unionWith" && !parser.names.reads_score();
        Ok(())
    }

    /// Whether the score is read. The pipelines of a `$facet` read that of the documents that come in.
    pub(super) fn leave(self, parser: &mut Parser<'_>) -> Result<bool> {
        let reads = parser.names.take_reads_score();
        let is_facet = parser.within == Within::Facet;
        if self.outer || (reads && is_facet) {
            parser.names.note_score();
        }
        match parser.within {
            Within::Command if reads && !self.is_first => Err(carried::unavailable()),
            Within::Lookup | Within::UnionWith if reads && !self.is_first => Err(later(carried::unavailable())),
            _ => Ok(reads),
        }
    }
}

/// The error of a search that is not the first stage.
pub fn not_first() -> Error {
    Error::new(Code::Location(17313), "$match with $text is only allowed as the first pipeline stage")
}

/// MongoDB finds it out while it runs.
fn later(error: Error) -> Error {
    error.context("PlanExecutor error during aggregation :: caused by :: ")
}
