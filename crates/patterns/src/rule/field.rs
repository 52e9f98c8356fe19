//! A field that a rule keeps in its hosts. Pure: a field says what is to be read and written, and sends nothing; everything that
//! waits, sends, retries or fences is written once above it.
//!
//! A field answers three questions. What does a changed source document mean for hosts ([`Field::react`])? What is the value of
//! some hosts from scratch ([`Field::wanted`], [`Field::query`], [`Field::place`])? And what defines it, as a pipeline
//! ([`Field::expected`])? The first two must agree with the third: tests hold them against it.

use crate::rule::items::Items;
use crate::rule::numbers::Numbers;
use crate::rule::{Fate, Link, Needs, Obstacle, Recipe, key};
use document::backend::Mode;
use document::filter::Filter;
use document::op::{Capture, Change, Namespace, ReadOp, UpdateStatement};
use document::pipeline::Pipeline;
use document::update::Update;
use document::value::path::Part;
use document::value::{Path, order};
use document::{Array, Doc, Env, Result, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::fmt::Debug;
use std::sync::Arc;

/// A value and the path in a host where it goes; a missing one takes away what is there.
pub type PathValue<'v> = (&'v [Part], Value<'v>);

/// Where a field is kept, and by which rule.
#[derive(Clone, Debug)]
pub struct HostField {
    pub rule: Arc<str>,
    pub host: Namespace,
    pub path: Path,
}

/// What the value depends on: capture, the order of rules and cycles come from this.
#[derive(Clone, Debug)]
pub struct Reads {
    /// Of a changed source document.
    pub source: Capture,
    /// Of the host itself: its link values; what the rule owns is not among them.
    pub host: Vec<Path>,
}

/// How a field passes fences, its row of SEMANTICS R1.
#[derive(Clone, Copy, Debug)]
pub struct Fences {
    /// Evaluating a host: shared fences are passed last, exclusive ones first.
    pub evaluate: Mode,
    /// A source that changes, whatever becomes of the hosts.
    pub change: Option<Mode>,
    /// A delta that perhaps wrote no host.
    pub unwritten: Option<Mode>,
}

/// What a changed source document means for the hosts of one key.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Nothing but the fence of the change.
    Nothing,
    Update(Delta),
    /// What the delta means depends on what the hosts hold: they are read first, and [`Field::decide`] says it for each.
    Look(Delta),
    /// The sources of the key are read again, behind the client's own statement: [`Field::ask`] and [`Field::answer`].
    Ask(Inquiry),
    /// The hosts are deleted with their source.
    Delete,
    /// The change is refused while hosts refer to the source.
    Refuse,
}

/// What is to be read of a key's sources, and how that is fenced.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// The part of the value that it is about, and of its fence: missing if it is about the whole key.
    pub about: Value<'static>,
    /// What changed. An inquiry about the whole key holds it already.
    pub delta: Delta,
    /// Shared where nothing rests on an answer that leaves the host unwritten (SEMANTICS R1).
    pub mode: Mode,
}

/// An inquiry about a key.
#[derive(Clone, Debug)]
pub struct Question {
    pub key: Value<'static>,
    pub about: Value<'static>,
    pub delta: Delta,
}

/// By key of the host.
pub type Effects = SmallVec<[(Value<'static>, Effect); 2]>;

/// What changes in a host's field. Data: only its field knows the meaning.
#[derive(Clone, Debug)]
pub enum Delta {
    Count(i64),
    Numbers(Numbers),
    /// Numbers for the host's state alone: its value is made visible later (SEMANTICS R2, seeding of roll-ups).
    State(Numbers),
    /// Source documents that came to the host and left it; one that changed did both.
    Items {
        came: Items,
        left: Items,
        /// As [`Numbers::children`].
        children: i64,
    },
    /// The value that a source gives; `appeared` if no host can have had it before.
    Set {
        value: Value<'static>,
        appeared: bool,
        /// As [`Numbers::children`].
        children: i64,
    },
    Unset,
}

/// What must be read before a written host has the right value.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The host is right.
    Nothing,
    /// The host alone tells: it is placed without rows.
    Here,
    /// The host with the value that it had before: a client's write took it away, and nothing that it depends on changed.
    Restored(Doc<'static>),
    /// The rows of these keys.
    Rows(key::Values),
}

/// How rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// As rows of a pipeline: what is sent over a network is small.
    Rows,
    /// As whole documents where that is cheaper: nothing is sent.
    Documents,
    /// By `_id` with the shortest command, if hosts refer by it.
    Shortest,
    /// From a collection in another form: its documents are found by conditions on its key alone, and a `$lookup` would take all of
    /// it apart.
    Shaped,
}

/// How a field looks its sources up again when one of them changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// Not at all: what changed tells the rest.
    Never,
    /// Those of a key by their value.
    ByValue,
    /// The first ones of a key in an order that begins with this path.
    InOrder(Path),
}

/// For so many keys the sources of each are sought; for more those of all are read once.
pub const SOUGHT_KEYS: usize = 100;

impl Lookup {
    /// How many keys one read is about.
    pub fn keys_per_read(&self, keys: usize, fetch: Fetch) -> usize {
        match self {
            // The first ones of several keys are found together only by a `$lookup`.
            Lookup::InOrder(_) if fetch == Fetch::Shaped && keys <= SOUGHT_KEYS => 1,
            _ => keys.max(1),
        }
    }

    /// How many inquiries one read answers: never so many that it would read all sources of their keys, since what a write costs must
    /// not depend on how many there are.
    pub fn inquiries_per_read(&self, inquiries: usize, fetch: Fetch) -> usize {
        match fetch {
            Fetch::Shaped => self.keys_per_read(inquiries, fetch),
            Fetch::Documents | Fetch::Rows | Fetch::Shortest => inquiries.clamp(1, SOUGHT_KEYS),
        }
    }
}

/// The stages by which a host's fields become what deltas make of them: two `$set`s, so that several fields merge into one
/// update. Deltas are bound as constants.
#[derive(Clone, Debug)]
pub struct HostStages {
    pub first: Vec<(String, Value<'static>)>,
    pub second: Option<(String, Value<'static>)>,
    /// Behind both, a `$set` of its own: a field of the first level, which others may lead into.
    pub whole: Option<(String, Value<'static>)>,
    /// All of them as the stages of a field that changes alone.
    pub alone: Array<'static>,
}

/// A value computed from the host alone: as a stage, and compiled.
#[derive(Clone, Debug)]
pub struct OwnStage {
    pub stage: Value<'static>,
    pub program: Pipeline,
}

/// What a field's values look like, to know before they are written: samples, of which each must be allowed or, for
/// `any`, one.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    pub values: Vec<Value<'static>>,
    pub any: Vec<Value<'static>>,
    /// A host may have none.
    pub optional: bool,
}

/// What decides how hosts with a wrong value are searched.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The rule is in force: types and state count too.
    pub in_force: bool,
    pub is_indexed: bool,
    /// Many hosts share a source.
    pub few_sources: bool,
}

/// A pipeline on the host's collection that gives `{ stored, expected }`, for copies also `sourceless`.
#[derive(Clone, Debug)]
pub struct ComparisonPipeline {
    pub stages: Vec<Value<'static>>,
    /// For how many hosts one document stands, as an expression.
    pub hosts: Value<'static>,
}

/// Rows that were read for some hosts, by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    by_key: HashMap<Vec<u8>, Doc<'static>>,
}

impl Rows {
    pub fn insert(&mut self, key: &Value<'_>, row: Doc<'static>) {
        self.by_key.insert(key::bytes(key), row);
    }

    pub fn get(&self, key: &Value<'_>) -> Option<&Doc<'static>> {
        self.by_key.get(&key::bytes(key))
    }

    pub fn contains(&self, key: &Value<'_>) -> bool {
        self.by_key.contains_key(&key::bytes(key))
    }

    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Takes in what [`Field::query`] read.
    pub fn add(&mut self, field: &dyn Field, fetch: Fetch, documents: &[Doc<'static>]) {
        for document in documents {
            if let Some((key, row)) = field.row(document, fetch) {
                self.insert(&key, row);
            }
        }
    }
}

impl Effect {
    /// What changed; `None` if it says nothing of that.
    pub fn into_delta(self) -> Option<Delta> {
        match self {
            Effect::Update(delta) | Effect::Look(delta) => Some(delta),
            Effect::Ask(inquiry) => Some(inquiry.delta),
            Effect::Nothing | Effect::Delete | Effect::Refuse => None,
        }
    }
}

impl Delta {
    /// Nothing but a number of children.
    pub fn of_children(children: i64) -> Delta {
        Delta::State(Numbers { children, ..Numbers::default() })
    }

    /// Whether it changes nothing.
    pub fn is_zero(&self) -> bool {
        match self {
            Delta::Count(n) => *n == 0,
            Delta::Numbers(numbers) | Delta::State(numbers) => numbers.is_zero(),
            Delta::Items { came, left, children } => came.is_empty() && left.is_empty() && *children == 0,
            Delta::Set { .. } | Delta::Unset => false,
        }
    }

    /// Whether a host that has it is surely written: a value may be what the host holds already.
    pub fn always_writes(&self) -> bool {
        match self {
            Delta::Count(_) | Delta::Numbers(_) | Delta::State(_) => !self.is_zero(),
            Delta::Items { children, .. } | Delta::Set { children, .. } => *children != 0,
            Delta::Unset => false,
        }
    }

    /// How many children come to the host, or leave it, where they make and remove it (SEMANTICS R35).
    pub fn children(&self) -> i64 {
        match self {
            Delta::Numbers(numbers) | Delta::State(numbers) => numbers.children,
            Delta::Items { children, .. } | Delta::Set { children, .. } => *children,
            Delta::Count(_) | Delta::Unset => 0,
        }
    }

    /// The same with more children.
    #[must_use]
    pub fn with_children(mut self, more: i64) -> Delta {
        match &mut self {
            Delta::Numbers(numbers) | Delta::State(numbers) => numbers.children += more,
            Delta::Items { children, .. } | Delta::Set { children, .. } => *children += more,
            Delta::Count(_) | Delta::Unset => {}
        }
        self
    }

    /// The same for the host's state alone.
    #[must_use]
    pub fn hidden(self) -> Delta {
        match self {
            Delta::Numbers(numbers) => Delta::State(numbers),
            Delta::Items { children, .. } | Delta::Set { children, .. } => Delta::of_children(children),
            other => other,
        }
    }
}

pub trait Field: Debug + Send + Sync {
    fn target(&self) -> &HostField;

    /// Where its source documents come from; `None` if it is computed from the host alone.
    fn link(&self) -> Option<&Link>;

    fn reads(&self) -> &Reads;

    /// Where the host keeps what the value is computed from.
    fn state(&self) -> Option<&Path> {
        None
    }

    fn fences(&self) -> Fences;

    /// What must be in the database beside the hosts: the indexes of its link.
    fn needs(&self) -> Needs {
        self.link().map(|link| Needs::of_link(&self.target().host, link)).unwrap_or_default()
    }

    /// What it keeps, in a few words: `count of reviews by productId`.
    fn describe(&self) -> String;

    /// What a client writes instead of the field.
    fn instead(&self) -> String;

    /// Whether the way to the value may lead through arrays.
    fn enters_arrays(&self) -> bool;

    fn lookup(&self) -> Lookup {
        Lookup::Never
    }

    /// What a changed source document means for hosts. Refuses an array in the link of `after` unless the rule says `each`.
    fn react(&self, _change: &Change, _env: &Env, _effects: &mut Effects) -> Result<()> {
        Ok(())
    }

    /// What a source document that is there adds to its hosts: what [`Field::react`] says of its insert, arrays that link nothing
    /// left out.
    fn contribution(&self, _source: &Doc<'_>, _env: &Env) -> Result<Effects> {
        Ok(Effects::new())
    }

    /// The keys of the hosts that an inserted source document will write to: known before, for hot hosts (SEMANTICS R12).
    fn hosts_of_source(&self, _source: &Doc<'_>, _env: &Env) -> Result<key::Values> {
        Ok(key::Values::new())
    }

    /// Whether what follows from an inserted source needs no answer: what is looked at is decided by stages.
    fn is_blind(&self) -> bool {
        false
    }

    /// Whether the stages of a delta that hosts are looked at for give what [`Field::decide`] would lead to, or fail where the host
    /// does not tell ([`crate::rule::undecided`]).
    fn stages_decide(&self, _delta: &Delta) -> bool {
        false
    }

    /// What a delta means for a host that was read for it ([`Effect::Look`]): `Nothing` but for the number of its children, `Update`
    /// or `Ask`. The host may hold anything where seeding has not made it right yet; a roll-up's that is not there is empty.
    fn decide(&self, _host: &Doc<'_>, delta: Delta) -> Result<Effect> {
        Ok(Effect::Update(delta))
    }

    /// Reads what some inquiries need: one row for each question that has one. Here: the rows of the whole keys.
    fn ask(&self, questions: &[Question], fetch: Fetch) -> Result<ReadOp> {
        let mut keys: Vec<Value<'static>> = questions.iter().map(|question| question.key.clone()).collect();
        keys.sort_by(order::compare);
        keys.dedup_by(|a, b| order::equal(a, b));
        self.query(&keys, fetch)
    }

    /// What one document of [`Field::ask`] answers: the key and the part that a question is about, and the row for
    /// [`Field::answer`].
    fn answer_row(&self, document: &Doc<'_>, fetch: Fetch) -> Option<(Value<'static>, Value<'static>, Doc<'static>)> {
        self.row(document, fetch).map(|(key, row)| (key, Value::Missing, row))
    }

    /// What follows for the hosts of the question's key; `None` if they stay as they are, but for the number of their children.
    fn answer(&self, _question: &Question, _row: Option<&Doc<'_>>) -> Result<Option<Delta>> {
        Ok(None)
    }

    /// Both deltas as one.
    fn combine(&self, first: Delta, second: &Delta) -> Result<Delta>;

    /// The name under which a delta is bound in [`Field::stages`].
    fn variable(&self) -> &str;

    /// What a delta makes of a host.
    fn stages(&self, delta: &Delta) -> &HostStages;

    /// The update for a delta that comes alone, if it was compiled before.
    fn compiled_update(&self, _delta: &Delta) -> Option<&Update> {
        None
    }

    /// What the variable of the stages holds for a delta.
    fn constant(&self, delta: &Delta) -> Value<'static>;

    /// The same as the stages, as code: what the host has then, at which paths.
    fn apply<'d>(&'d self, delta: &'d Delta, host: &Doc<'_>, into: &mut SmallVec<[PathValue<'d>; 6]>) -> Result<()>;

    /// Whether its deltas share a statement with those of the host's other fields.
    fn merges(&self) -> bool {
        true
    }

    /// A statement of its own for all hosts of a key: for what stages cannot say, or say at greater length.
    fn own_statement(&self, _key: &Value<'_>, _delta: &Delta) -> Result<Option<UpdateStatement>> {
        Ok(None)
    }

    /// The hosts of a key.
    fn hosts(&self, key: &Value<'_>) -> Filter;

    /// The link values of a host. An array where none may be links nothing.
    fn keys(&self, host: &Doc<'_>) -> key::Values;

    /// What must be read so that a host has the right value. `before` is the host before the client's write; nothing for an insert.
    fn wanted(&self, host: &Doc<'_>, before: Option<&Doc<'_>>) -> Result<Wanted>;

    /// Reads the rows of some keys.
    fn query(&self, keys: &[Value<'static>], fetch: Fetch) -> Result<ReadOp>;

    /// What one document of [`Field::query`] says: the key, and the row that [`Field::place`] takes.
    fn row(&self, document: &Doc<'_>, fetch: Fetch) -> Option<(Value<'static>, Doc<'static>)>;

    /// The host with the right value. `before` as in [`Field::wanted`]; audit passes the host itself.
    fn place(&self, host: &Doc<'_>, before: Option<&Doc<'_>>, rows: &Rows, env: &Env) -> Result<Doc<'static>>;

    /// The host with the value that its own state gives; `None` for a field that keeps no state.
    fn shown_by_state(&self, _host: &Doc<'_>) -> Result<Option<Doc<'static>>> {
        Ok(None)
    }

    /// What a host holds that has no sources yet: the field and, if there is one, its state.
    fn empty_values(&self) -> Vec<(Path, Value<'static>)> {
        Vec::new()
    }

    /// Whether every host gets a value, and finding it never fails: one without a value is filled, whatever its sources are.
    fn fills_every_host(&self) -> bool {
        false
    }

    /// Of a field that makes its hosts: stages on the source that give the rows of keys without a host.
    fn without_host(&self) -> Option<Array<'static>> {
        None
    }

    /// What leaves no room in the host for the value.
    fn obstacle(&self, host: &Doc<'_>) -> Option<Obstacle>;

    /// Whether a host has what it should have.
    fn is_right(&self, host: &Doc<'_>, right: &Doc<'_>) -> bool;

    /// What becomes of the value that the host has.
    fn fate(&self, host: &Doc<'_>, right: &Doc<'_>) -> Fate;

    /// The update that makes a host right, as little as can be sent.
    fn correction(&self, host: &Doc<'_>, right: &Doc<'_>) -> Result<Update>;

    /// Whether a host has a value of the source with this key, or had one before the source was deleted.
    fn holds(&self, _host: &Doc<'_>, _key: &Value<'_>) -> bool {
        false
    }

    /// The definition: a pipeline on the host's collection that gives `{ _id, stored, expected }` of each host (for sums also
    /// `state` and `expectedState`); with `only_differences`, of those where they differ. It may stand behind a `$match`.
    fn expected(&self, only_differences: bool) -> Array<'static>;

    /// Stages that find the hosts whose value is perhaps wrong: they end with documents that have the host's `_id`.
    fn suspects(&self, search: Search) -> Result<Vec<Value<'static>>>;

    /// Pipelines that compare all hosts with what seeding would leave; `None` if the hosts must be walked.
    fn comparison(&self, is_indexed: bool) -> Result<Option<Vec<ComparisonPipeline>>>;

    /// The values that it will write, by some of its sources and hosts.
    fn samples(&self, sources: &[Doc<'static>], hosts: &[Doc<'static>], env: &Env) -> Result<Samples>;

    /// What the same host's other fields need: the value computed from the host alone.
    fn own_stage(&self) -> Option<&OwnStage> {
        None
    }

    fn recipe(&self) -> Result<Recipe>;
}
