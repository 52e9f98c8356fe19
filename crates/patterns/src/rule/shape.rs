//! A form in which a collection is stored. A shape translates between the logical documents that clients see and the stored
//! ones. It sends nothing by itself: what it reads and writes goes through a [`StoredAccess`], which belongs to one attempt in one
//! transaction and is written once, above all shapes.

use document::backend::Answer;
use document::op::{
    Context, DeleteStatement, Find, Namespace, SortSpec, UpdateStatement, WriteError, WriteOp, Written,
};
use document::{Doc, Error, Result, Value};
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use crate::rule::read::ReadShape;
use crate::rule::{LifeShape, Needs, Rule, Stack};

/// Takes a document; returns whether more are wanted.
pub type Visit<'v> = dyn FnMut(Doc<'static>) -> Result<bool> + Send + 'v;

/// Remembers something after a commit.
pub type Learn = Box<dyn FnOnce() + Send + Sync>;

/// One place where logical documents are stored, and in which form.
#[derive(Clone, Debug)]
pub struct Place {
    pub stored: Namespace,
    pub shape: Arc<dyn Shape>,
}

impl Rule {
    /// The place that the rule declares; `None` if it stores no collection.
    pub fn declared_place(&self) -> Option<Place> {
        let shape = self.shape()?.clone();
        Some(Place { stored: shape.declared_place().unwrap_or(&self.host).clone(), shape })
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.stored == other.stored && self.shape.is_same(&*other.shape)
    }
}

/// Why a plan ended.
#[derive(Debug)]
pub enum Stop {
    /// The client's statement at this place fails.
    Statement { at: usize, error: Error },
    /// The whole attempt does: a conflict, or something that concerns the command.
    Command(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Command(error)
    }
}

impl Stop {
    /// An error met while the statement at that place was evaluated.
    pub fn of(at: usize) -> impl Fn(Error) -> Stop {
        move |error| match error.is_of_statement() {
            true => Stop::Statement { at, error },
            false => Stop::Command(error),
        }
    }
}

/// The answer of a step that may fail for one statement.
pub type Stepped<'a, T> = Pin<Box<dyn Future<Output = Result<T, Stop>> + Send + 'a>>;

/// Reads of stored documents.
pub trait StoredReads: Send {
    fn context(&self) -> &Context;

    /// Shows the documents of a read to `visit` until it has seen enough.
    fn each<'a>(&'a mut self, find: Find, visit: &'a mut Visit<'_>) -> Answer<'a, ()>;
}

/// Stored documents, as one attempt reads and writes them.
pub trait StoredAccess: StoredReads {
    /// Runs statements on what is stored. `adds` are the logical documents that they add, if they do nothing else; without it,
    /// what they mean for logical documents is read off the stored ones.
    fn write<'a>(&'a mut self, op: &'a WriteOp, adds: Option<Vec<Doc<'static>>>) -> Answer<'a, Written>;

    /// Whether anything depends on what the logical documents become.
    fn is_watched(&self) -> bool;

    /// Whether what is remembered of stored documents may be relied on: where a wrong guess is only another attempt.
    fn may_guess(&self) -> bool;

    /// Notes a stored document that is written, by its hash: after a conflict the next attempt waits for its turn.
    fn touch(&mut self, host: u64);

    /// Remembers something once the attempt is committed.
    fn once_committed(&mut self, learn: Learn);
}

/// Statements that are sent as the client's own, each about one stored document, so that they need no transaction. They carry
/// the client's session and statement numbers: the backend makes them exactly-once (SEMANTICS R4).
pub trait DirectAccess: StoredReads {
    fn send<'a>(&'a mut self, op: &'a WriteOp) -> Answer<'a, Written>;

    fn is_in_transaction(&self) -> bool;

    /// Whether a validator may be bypassed without a right of its own.
    fn may_bypass_validation(&self) -> bool;

    /// Waits until no turn is taken on a stored document.
    fn make_way(&mut self, host: u64) -> Answer<'_, ()>;

    /// Waits before the next try; fails if the time is over.
    fn again(&mut self, error: Error) -> Answer<'_, ()>;
}

/// What the command says about its statements.
#[derive(Clone, Debug, Default)]
pub struct CommandOptions {
    pub ordered: bool,
    pub bypass_validation: bool,
    pub statement_ids: Vec<i32>,
}

impl CommandOptions {
    pub fn of(op: &WriteOp) -> CommandOptions {
        let (ordered, bypass_validation, statement_ids) = match op {
            WriteOp::Insert(op) => (op.ordered, op.bypass_validation, op.statement_ids.clone()),
            WriteOp::Update(op) => (op.ordered, op.bypass_validation, op.statement_ids.clone()),
            WriteOp::Delete(op) => (op.ordered, false, op.statement_ids.clone()),
            WriteOp::FindAndModify(op) => (true, op.bypass_validation, vec![op.statement_id]),
        };
        CommandOptions { ordered, bypass_validation, statement_ids }
    }

    /// The retry number of the client's statement at that place.
    pub fn statement_id(&self, at: usize) -> i32 {
        self.statement_ids.get(at).copied().unwrap_or_else(|| i32::try_from(at).unwrap_or(i32::MAX))
    }
}

/// What becomes of one logical document.
#[derive(Debug)]
pub enum LogicalFate {
    Gone,
    Becomes(Doc<'static>),
}

/// What becomes of a stored document when logical documents in it change.
#[derive(Debug)]
pub struct Rewrite {
    pub change: StoredChange,
    /// Logical documents that do not belong there any more.
    pub moved: Vec<Doc<'static>>,
    /// The stored document's hash for turns, if it has one.
    pub host: Option<u64>,
}

#[derive(Debug)]
pub enum StoredChange {
    Update(UpdateStatement),
    Delete(DeleteStatement),
}

/// What it means that a logical document with the same derived `_id` is stored already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Inserts add up, where the shape adds up.
    AddedTo,
    Refused,
}

/// New logical documents, each for the client's statement at its place.
#[derive(Debug)]
pub struct NewDocuments<'n> {
    pub documents: &'n [(usize, Doc<'static>)],
    pub existing: Existing,
    pub ordered: bool,
    pub bypass_validation: bool,
    /// Whether they come from another place of the same collection. What is stored must not depend on how many parts a move has.
    pub are_moved: bool,
}

/// What came of new documents.
#[derive(Debug, Default)]
pub struct Inserted {
    /// Those with nothing written for them, and why.
    pub refused: Vec<WriteError>,
    /// Of documents that are moved and stored: what clients see of them now, if not what [`Shape::as_read`] says.
    pub seen: Vec<(usize, Doc<'static>)>,
}

/// What writes need to know of a form.
pub trait Shape: ReadShape + LifeShape + Any {
    fn is_same(&self, other: &dyn Shape) -> bool;

    /// The stored collection that the declaration names; `None` if documents keep the collection's own name.
    fn declared_place(&self) -> Option<&Namespace> {
        None
    }

    /// What must be in the database where documents are stored in this form: collections, indexes, validators.
    fn needs(&self, stored: &Namespace) -> Needs;

    /// The order of logical documents that "the first match" follows, where a statement names none.
    fn order(&self) -> SortSpec;

    /// The order of stored documents that follows [`Shape::order`]; empty if they have none. `None` only if stored documents are the
    /// logical ones: then a read gives the first match by itself.
    fn stored_order(&self) -> Option<SortSpec>;

    /// Bytes that are equal for stored documents at one place in the order.
    fn place_in_order(&self, stored: &Doc<'static>) -> Result<Vec<u8>>;

    /// Whether the `_id` of a logical document is made of its other fields.
    fn derives_id(&self) -> bool;

    /// The document with the fields that its derived `_id` tells and that it lacks.
    fn with_key(&self, logical: Doc<'static>) -> Doc<'static> {
        logical
    }

    /// The `_id` of a logical document. Fails if the document cannot be stored.
    fn check(&self, logical: &Doc<'static>) -> Result<Value<'static>>;

    /// The document as it will be read.
    fn as_read(&self, logical: &Doc<'static>) -> Result<Doc<'static>>;

    /// The same without a check: `None` if it is as it will be read.
    fn normal(&self, _logical: &Doc<'static>) -> Option<Doc<'static>> {
        None
    }

    /// What a new document makes of one with the same derived `_id`; `None` if it is a duplicate.
    fn sum(&self, _stored: &Doc<'static>, _new: &Doc<'static>) -> Result<Option<Doc<'static>>> {
        Ok(None)
    }

    /// What is stored instead of one stored document; `fates` by place in it.
    fn rewrite(&self, place: &Place, stored: &Doc<'static>, fates: Vec<(usize, LogicalFate)>) -> Result<Rewrite>;

    /// Adds logical documents.
    fn insert<'a>(
        &'a self,
        at: &'a mut dyn StoredAccess,
        stack: &'a Stack,
        place: &'a Place,
        new: NewDocuments<'a>,
    ) -> Stepped<'a, Inserted>;

    /// The stored documents that new ones go to, by hash, if they are known before.
    fn hosts(&self, _place: &Place, _documents: &[Doc<'static>]) -> Vec<u64> {
        Vec::new()
    }

    /// A stored document was rewritten: what is remembered of it is not true any more.
    fn forget(&self, _host: u64) {}

    /// The statements from `from` on that are one statement on one stored document each: [`Shape::run_direct`] takes them. Only
    /// the command and the rule decide, never what is stored, so that a command that is sent again goes the same way.
    fn direct(&self, _stack: &Stack, _op: &WriteOp, from: usize, _in_transaction: bool) -> Range<usize> {
        from..from
    }

    /// A statement that [`Shape::direct`] names, as one on a stored document, for a plan that is shown; `None` for inserts.
    fn single_statement(&self, _stack: &Stack, _place: &Place, _op: &WriteOp, _index: usize) -> Option<WriteOp> {
        None
    }

    /// Runs those of the statements that [`Shape::direct`] named.
    fn run_direct<'a>(
        &'a self,
        at: &'a mut dyn DirectAccess,
        stack: &'a Stack,
        place: &'a Place,
        op: &'a WriteOp,
        statements: Vec<usize>,
    ) -> Answer<'a, Written> {
        let _ = (at, stack, place, op, statements);
        Box::pin(std::future::ready(Ok(Written::default())))
    }
}
