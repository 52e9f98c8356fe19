//! The variables a program may name: each is bound to a slot of the [`super::Scope`] or to a constant.

use crate::error::{Error, Result};
use crate::pipeline::Pipeline;
use crate::pipeline::places::Setters;
use crate::value::Value;
use std::sync::Arc;

/// The variables in sight while parsing.
#[derive(Clone, Debug, Default)]
pub struct Names {
    bound: Vec<(String, Binding)>,
    next_slot: usize,
    /// How many expressions are being parsed, one inside the other.
    depth: usize,
    /// Whether constants are left alone: some operators do not look into their arguments before they run.
    unfolded: bool,
    /// Whether constants that cannot be evaluated are left for the run to fail on.
    lenient: bool,
    /// The first failure in evaluating constants: reported only when everything has been parsed.
    folding_error: Option<Error>,
    folding_failed: bool,
    /// What is set behind the stage being parsed, in each of the pipelines around it, the outermost first.
    behind: Vec<(Arc<Setters>, usize)>,
    /// Whether something leaves the places of removed fields, to be tidied away at the end.
    leaves_places: bool,
    /// Whether something reads the score of a text search.
    reads_score: bool,
    /// Collections whose documents are seen as these stages make them.
    read_through: Vec<(String, Pipeline)>,
}

#[derive(Clone, Debug)]
pub(super) enum Binding {
    Slot(usize),
    Constant(Value<'static>),
}

impl Names {
    pub fn new() -> Names {
        Names::default()
    }

    /// Notes that something reads the score of a text search.
    pub(crate) fn note_score(&mut self) {
        self.reads_score = true;
    }

    /// Whether something has read the score since the last call.
    pub(crate) fn take_reads_score(&mut self) -> bool {
        std::mem::take(&mut self.reads_score)
    }

    pub(crate) fn reads_score(&self) -> bool {
        self.reads_score
    }

    /// From here on `$graphLookup` sees the documents of a collection as `stages` make them. The other joins say this in their own
    /// pipelines.
    pub fn read_through(&mut self, collection: &str, stages: Pipeline) {
        self.read_through.push((collection.to_owned(), stages));
    }

    /// What documents of a collection go through before they are seen.
    pub(crate) fn stages_of(&self, collection: &str) -> Pipeline {
        let found = self.read_through.iter().find(|(name, _)| name == collection);
        found.map(|(_, stages)| stages.clone()).unwrap_or_default()
    }

    /// Binds a variable whose value is known now: the `let` of a command.
    pub fn bind_constant(&mut self, name: &str, value: Value<'static>) {
        self.bound.push((name.to_owned(), Binding::Constant(value)));
    }

    /// Binds a variable to a new slot, from here until [`Names::release`].
    pub fn bind(&mut self, name: &str) -> usize {
        let slot = self.next_slot;
        self.next_slot += 1;
        self.bound.push((name.to_owned(), Binding::Slot(slot)));
        slot
    }

    /// How many bindings there are: pass to [`Names::release`] to leave a scope.
    pub fn mark(&self) -> usize {
        self.bound.len()
    }

    pub fn release(&mut self, mark: usize) {
        self.bound.truncate(mark);
    }

    /// Whether the last parse failed in evaluating constants: MongoDB says then that it "Failed to optimize pipeline".
    pub fn folding_failed(&self) -> bool {
        self.folding_failed
    }

    /// As [`Names::folding_failed`], and forgets it: the error is kept until the rest is parsed.
    pub fn take_folding_failed(&mut self) -> bool {
        std::mem::take(&mut self.folding_failed)
    }

    /// Keeps the error of evaluating constants until the outermost expression is parsed: errors of parsing come first. False
    /// if it is no error yet, and the expression is to be left as it is.
    #[must_use]
    pub(super) fn fold_error(&mut self, error: Error) -> bool {
        if !self.lenient {
            self.folding_error.get_or_insert(error);
        }
        !self.lenient
    }

    /// Parses what MongoDB optimises only when a document gets there: errors of constants wait until then.
    pub(in crate::pipeline) fn leniently<T>(&mut self, parse: impl FnOnce(&mut Names) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.lenient, true);
        let result = parse(self);
        self.lenient = before;
        result
    }

    /// Parses what MongoDB evaluates only when it runs, constants too.
    pub(crate) fn unfolded<T>(&mut self, parse: impl FnOnce(&mut Names) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.unfolded, true);
        let result = parse(self);
        self.unfolded = before;
        result
    }

    pub(super) fn is_unfolded(&self) -> bool {
        self.unfolded
    }

    /// Parses one expression with `parse`, noticing where the outermost one ends.
    pub(super) fn within<T>(&mut self, parse: impl FnOnce(&mut Names) -> Result<T>) -> Result<T> {
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        if self.depth > 0 {
            return result;
        }
        match (result, self.folding_error.take()) {
            (Ok(_), Some(error)) => {
                self.folding_failed = true;
                Err(error)
            }
            (result, _) => result,
        }
    }

    /// For a caller that keeps such an error longer still, until all its expressions are parsed.
    pub(crate) fn note_folding_failed(&mut self) {
        self.folding_failed = true;
    }

    pub(in crate::pipeline) fn enter_pipeline(&mut self, setters: Setters) {
        self.behind.push((Arc::new(setters), 0));
    }

    pub(in crate::pipeline) fn enter_stage(&mut self, stage: usize) {
        if let Some((_, at)) = self.behind.last_mut() {
            *at = stage;
        }
    }

    /// Says whether there are places to tidy away: at the end of the outermost pipeline.
    pub(in crate::pipeline) fn leave_pipeline(&mut self) -> bool {
        self.behind.pop();
        self.behind.is_empty() && std::mem::take(&mut self.leaves_places)
    }

    /// Whether a field of that name, where it is taken away, is to leave its place: because a later stage sets it.
    pub(crate) fn leaves_place(&mut self, name: &str) -> bool {
        let leaves = self.behind.iter().any(|(setters, at)| setters.sets_behind(*at, name));
        self.leaves_places |= leaves;
        leaves
    }

    pub(super) fn find(&self, name: &str) -> Option<&Binding> {
        self.bound.iter().rev().find(|(bound, _)| bound == name).map(|(_, binding)| binding)
    }
}

/// Checks a name that a client binds: it starts with a lower-case letter (or is not ASCII), `CURRENT` excepted.
pub fn check_bindable(name: &str) -> Result<()> {
    if name == "CURRENT" {
        return Ok(());
    }
    check_start(name, |byte| byte.is_ascii_lowercase())?;
    check_rest(name)
}

/// Checks a name that a client refers to: system variables start with an upper-case letter.
pub(super) fn check_readable(name: &str) -> Result<()> {
    check_start(name, |byte| byte.is_ascii_alphabetic())?;
    check_rest(name)
}

fn check_start(name: &str, allowed: fn(u8) -> bool) -> Result<()> {
    match name.bytes().next() {
        None => Err(Error::failed_to_parse("empty variable names are not allowed")),
        Some(first) if allowed(first) || !first.is_ascii() => Ok(()),
        Some(_) => {
            Err(Error::failed_to_parse(format!("'{name}' starts with an invalid character for a user variable name")))
        }
    }
}

fn check_rest(name: &str) -> Result<()> {
    let valid = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || !letter.is_ascii();
    match name.chars().skip(1).find(|letter| !valid(*letter)) {
        None => Ok(()),
        Some(letter) => Err(Error::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name: '{letter}'"
        ))),
    }
}
