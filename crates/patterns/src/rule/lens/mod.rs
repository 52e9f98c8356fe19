//! [`Lens`]: documents of several versions in one collection, each read and written as one of the newest (SEMANTICS R19).
//!
//! A version differs from the one before it by [`steps`]. Both ways are stages of an update, compiled once: run in this process on
//! single documents, sent as MQL where a real MongoDB does the work. A document that says no number has version 1. One whose
//! number is not known here (a newer one, or none of ours) passes unchanged.

mod array_names;
#[cfg(test)]
mod client_tests;
mod client_version;
mod difference;
pub(crate) mod edits;
mod order;
mod push;
pub(crate) mod registered;
mod seen_filter;
mod seen_update;
pub mod steps;
#[cfg(test)]
mod tests;

pub use array_names::{ArrayName, with_own_names};
pub use client_version::Seen;
pub use difference::Change;
pub use order::OrderedPart;
pub use seen_filter::SeenFilter;
pub use seen_update::SeenDocument;
pub use steps::{ChangedPaths, Conversion, Origin, VersionStep};

use crate::mql::{call, call_with, cond, field, list, object};
use crate::rule::{IndexNeed, Needs, RegistryEntry};
use document::filter::{Filter, InSet, Node, Test};
use document::op::Namespace;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::{Native, Update};
use document::value::Path;
use document::{Array, Doc, DocWriter, Env, Result, Value};
use std::sync::Arc;

/// Where a document is kept that a pair of pipelines does not concern, while they run. No client's field is called so.
const ASIDE: &str = "_pleach_as_it_is";

/// What tells versions apart: proven by all proofs and crash runs.
pub const LENSES: &[RegistryEntry] = &[registered::ENTRY];

/// So many documents are migrated by one statement at most.
pub const TOGETHER: usize = 500;

/// The steps that bring a document to the next version.
pub type VersionSteps = Vec<Arc<dyn VersionStep>>;

/// One document, several versions.
#[derive(Debug)]
pub struct Lens {
    /// The top-level field that holds the number.
    pub field: Arc<str>,
    /// The first brings version 1 to 2.
    versions: Vec<VersionSteps>,
    /// The versions behind the newest that are taken back: documents that are stored in one of them are made the newest by `down`.
    taken_back: Vec<VersionSteps>,
    pub migrate: Migrate,
    /// For each older version, from 1: what makes its documents the newest.
    ups: Vec<Pipeline>,
    /// For each older version, from 1: what makes the newest documents such.
    downs: Vec<Pipeline>,
    /// For each version that is taken back, from the one behind the newest: what makes its documents the newest.
    backs: Vec<Pipeline>,
    /// What makes any stored document the newest.
    view: Array<'static>,
}

/// How stored documents are brought to the newest version.
#[derive(Clone, Debug, PartialEq)]
pub struct Migrate {
    /// Whether an old document that was read is written back.
    pub on_read: bool,
    /// Whether all of them are, in the background.
    pub background: bool,
    /// The hours of the day (UTC) in which the background work runs, as minutes since midnight; `None`: always.
    pub hours: Option<(u16, u16)>,
    /// How many documents a second at most.
    pub rate: Option<u32>,
}

impl Default for Migrate {
    fn default() -> Migrate {
        Migrate { on_read: false, background: true, hours: None, rate: None }
    }
}

impl Migrate {
    /// How many documents one statement is about, so that the rate is kept to.
    pub fn most_together(&self) -> u32 {
        let most = u32::try_from(TOGETHER).unwrap_or(u32::MAX);
        // Several statements in a second, so that clients do not wait for one long one.
        self.rate.map_or(most, |rate| rate.div_ceil(4).min(most))
    }

    /// `01:00-05:00`; `None` if the background work runs at any time.
    pub fn hours_text(&self) -> Option<String> {
        let clock = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        self.hours.map(|(from, to)| format!("{}-{}", clock(from), clock(to)))
    }
}

impl Lens {
    /// Fails if a stage that was written by hand is none of an update.
    pub fn new(field: &str, versions: Vec<VersionSteps>, migrate: Migrate) -> Result<Lens> {
        Lens::taking_back(field, versions, Vec::new(), migrate)
    }

    /// The same while the versions of `taken_back`, which came behind the others, are given up.
    pub fn taking_back(
        field: &str,
        versions: Vec<VersionSteps>,
        taken_back: Vec<VersionSteps>,
        migrate: Migrate,
    ) -> Result<Lens> {
        let (ups, downs, backs) = (Vec::new(), Vec::new(), Vec::new());
        let mut lens =
            Lens { field: field.into(), versions, taken_back, migrate, ups, downs, backs, view: Array::empty() };
        for version in 1..lens.newest() {
            lens.ups.push(parsed(lens.up_stages(version))?);
            lens.downs.push(parsed(lens.down_stages(version))?);
        }
        for taken in 0..lens.taken_back.len() {
            lens.backs.push(parsed(lens.back_stages(taken))?);
        }
        lens.view = lens.conditional();
        Ok(lens)
    }

    pub fn newest(&self) -> i32 {
        i32::try_from(self.versions.len()).unwrap_or(i32::MAX - 1) + 1
    }

    /// The newest version that documents may be stored in.
    pub(crate) fn last_known(&self) -> i32 {
        self.newest() + i32::try_from(self.taken_back.len()).unwrap_or_default()
    }

    /// The version of a document; `None` if its number is none that is known here.
    pub fn version_of(&self, doc: &Doc<'_>) -> Option<i32> {
        let number = match doc.get(&self.field) {
            None | Some(Value::Null | Value::Missing) => return Some(1),
            Some(number) => number.as_i64_exact().filter(|_| number.is_number())?,
        };
        i32::try_from(number).ok().filter(|version| (1..=self.last_known()).contains(version))
    }

    /// The steps from one version to the next, beginning with the first.
    pub fn versions(&self) -> &[VersionSteps] {
        &self.versions
    }

    /// The steps of the versions that are taken back, beginning with the one behind the newest.
    pub fn taken_back(&self) -> &[VersionSteps] {
        &self.taken_back
    }

    /// How many versions, beginning with the first, both reach by steps that come to the same.
    pub fn common(&self, other: &Lens) -> usize {
        let said = |steps: &VersionSteps| -> Vec<Value<'static>> {
            steps.iter().flat_map(|step| [list(stages_of(step.up())), list(stages_of(step.down()))]).collect()
        };
        self.versions.iter().zip(&other.versions).take_while(|(own, others)| said(own) == said(others)).count()
    }

    /// The document in the newest version; `None` if it is so already, or has a number that is not known.
    pub fn up(&self, doc: &Doc<'_>, env: &Env) -> Result<Option<Doc<'static>>> {
        let to_newest = |version: i32| match version < self.newest() {
            true => pipeline_of(&self.ups, version),
            false => pipeline_of(&self.backs, version - self.newest()),
        };
        match self.version_of(doc).and_then(to_newest) {
            Some(up) => up.transform(doc, env).map(Some),
            None => Ok(None),
        }
    }

    /// A whole document that a client writes: of the newest version if it has no number, and brought there if it has an older one.
    pub fn written(&self, doc: &Doc<'static>, env: &Env) -> Result<Doc<'static>> {
        match doc.get(&self.field) {
            None | Some(Value::Null | Value::Missing) => Ok(self.stamped(doc)),
            Some(_) => Ok(self.up(doc, env)?.unwrap_or_else(|| doc.clone())),
        }
    }

    /// The document with the newest number, in the place of what it has or at the end.
    fn stamped(&self, doc: &Doc<'static>) -> Doc<'static> {
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + self.field.len() + 8);
        for (name, value) in doc.iter().filter(|(name, _)| name.as_str() != &*self.field) {
            writer.append(name.as_str(), &value);
        }
        writer.append(&self.field, &Value::Int32(self.newest()));
        writer.finish()
    }

    /// The update that brings a document of any older version up, where it is stored.
    pub fn upgrade(self: &Arc<Self>) -> Update {
        Update::native(self.view.clone(), None, Arc::new(Upgrade(self.clone())))
    }

    /// A document of the newest version as a client of `version` sees it; `None` if it sees it as it is.
    pub fn down(&self, doc: &Doc<'_>, version: i32, env: &Env) -> Result<Option<Doc<'static>>> {
        match pipeline_of(&self.downs, version).filter(|_| self.version_of(doc) == Some(self.newest())) {
            Some(down) => down.transform(doc, env).map(Some),
            None => Ok(None),
        }
    }

    /// The update that makes documents of `version` the newest: what a person would run.
    pub fn up_stages(&self, version: i32) -> Array<'static> {
        let steps = self.from(version).flatten().map(|step| step.up());
        self.update(steps.collect(), self.newest())
    }

    /// The update that makes the newest documents ones of `version`.
    pub fn down_stages(&self, version: i32) -> Array<'static> {
        let steps = self.from(version).flatten().map(|step| step.down());
        let mut steps: Vec<Conversion> = steps.collect();
        steps.reverse();
        self.update(steps, version)
    }

    /// The update that makes documents of a version that is taken back the newest: the first is the one behind the newest.
    pub fn back_stages(&self, taken: usize) -> Array<'static> {
        let steps = self.taken_back.iter().take(taken + 1).flatten().map(|step| step.down());
        let mut steps: Vec<Conversion> = steps.collect();
        steps.reverse();
        self.update(steps, self.newest())
    }

    /// The stages that make any stored document the newest, in MQL.
    pub fn view(&self) -> &Array<'static> {
        &self.view
    }

    /// Whether the path may hold something else in another version. The number itself does.
    pub fn changes(&self, path: &Path) -> bool {
        let changes = |step: &Arc<dyn VersionStep>| match step.changed() {
            ChangedPaths::Everything => true,
            ChangedPaths::Paths(paths) => paths.iter().any(|changed| steps::overlap(changed, path)),
        };
        path.first() == &*self.field || self.versions.iter().chain(&self.taken_back).flatten().any(changes)
    }

    /// Old documents are found by their number: a read that asks for them too costs one seek once there are none.
    pub fn needs(&self, stored: &Namespace) -> Needs {
        Needs { indexes: vec![IndexNeed::lookup(stored, [Path::new(&self.field)])], ..Needs::default() }
    }

    /// Documents that are stored in an older version, or in one that is taken back.
    pub fn old(&self) -> Filter {
        Filter::from_node(Node::field(&self.field, Test::In(self.old_numbers())))
    }

    /// Documents that are stored in a version that is taken back.
    pub fn beyond(&self) -> Filter {
        self.stored_in(self.newest() + 1..self.last_known() + 1)
    }

    /// Documents that are stored in this version.
    pub fn stored_as(&self, version: i32) -> Filter {
        self.stored_in(version..version + 1)
    }

    /// Documents that are stored in the newest version, or in one that is not known.
    pub fn current(&self) -> Filter {
        Filter::from_node(Node::field(&self.field, Test::Not(Box::new(Test::In(self.old_numbers())))))
    }

    /// Documents whose number is none that is known here.
    pub fn unknown(&self) -> Filter {
        let known = Test::In(self.numbers(1..self.last_known() + 1));
        Filter::from_node(Node::field(&self.field, Test::Not(Box::new(known))))
    }

    fn stored_in(&self, versions: std::ops::Range<i32>) -> Filter {
        Filter::from_node(Node::field(&self.field, Test::In(self.numbers(versions))))
    }

    fn old_numbers(&self) -> Arc<InSet> {
        self.numbers((1..self.newest()).chain(self.newest() + 1..self.last_known() + 1))
    }

    /// What documents of these versions have in the field.
    fn numbers(&self, versions: impl Iterator<Item = i32> + Clone) -> Arc<InSet> {
        let unnumbered = versions.clone().any(|version| version == 1).then_some(Value::Null);
        let numbers = unnumbered.into_iter().chain(versions.map(Value::Int32)).collect();
        Arc::new(InSet::new(numbers, Vec::new()))
    }

    fn from(&self, version: i32) -> impl Iterator<Item = &VersionSteps> {
        let first = usize::try_from(version - 1).unwrap_or_default();
        self.versions.iter().skip(first)
    }

    fn update(&self, steps: Vec<Conversion>, version: i32) -> Array<'static> {
        let stages = steps.into_iter().flat_map(stages_of);
        stages.chain([call("$set", object([(&*self.field, Value::Int32(version))]))]).collect()
    }

    fn conditional(&self) -> Array<'static> {
        let mut stages = Vec::new();
        for (before, steps) in self.versions.iter().enumerate() {
            let last = i32::try_from(before).unwrap_or(i32::MAX - 1) + 1;
            let is_older = self.is_among(1..=last);
            for step in steps {
                match step.up() {
                    Conversion::Edits(edits) => stages.extend(edits.iter().map(|edits| edits.0.stage(Some(&is_older)))),
                    Conversion::Stages(own) => stages.extend(only_where(&is_older, own)),
                }
            }
        }
        for (taken, steps) in self.taken_back.iter().enumerate().rev() {
            let first = self.newest() + 1 + i32::try_from(taken).unwrap_or_default();
            let is_newer = self.is_among(first..=self.last_known());
            for step in steps.iter().rev() {
                match step.down() {
                    Conversion::Edits(edits) => stages.extend(edits.iter().map(|edits| edits.0.stage(Some(&is_newer)))),
                    Conversion::Stages(own) => stages.extend(only_where(&is_newer, own)),
                }
            }
        }
        let is_old = self.is_among((1..self.newest()).chain(self.newest() + 1..=self.last_known()));
        let number = cond(is_old, Value::Int32(self.newest()), field(&self.field));
        stages.push(call("$set", object([(&*self.field, number)])));
        stages.into_iter().collect()
    }

    /// Whether the number is one of these, as an expression.
    fn is_among(&self, versions: impl Iterator<Item = i32>) -> Value<'static> {
        let number = call_with("$ifNull", [field(&self.field), Value::Int32(1)]);
        call_with("$in", [number, list(versions.map(Value::Int32))])
    }
}

/// [`Lens::upgrade`] as code.
#[derive(Debug)]
struct Upgrade(Arc<Lens>);

impl Native for Upgrade {
    fn apply(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
        Ok(self.0.up(doc, env)?.unwrap_or_else(|| doc.clone().into_owned()))
    }
}

/// The first path of an index's key for which `is_meant` holds, if the index is unique.
pub fn unique_key(index: &Doc<'_>, is_meant: impl Fn(&Path) -> bool) -> Option<String> {
    let is_unique = index.get("unique").is_some_and(|unique| unique.is_truthy());
    let Some(Value::Document(keys)) = index.get("key").filter(|_| is_unique) else { return None };
    keys.iter().map(|(path, _)| path.as_str().to_owned()).find(|path| is_meant(&Path::new(path)))
}

fn parsed(stages: Array<'static>) -> Result<Pipeline> {
    Pipeline::parse_update(&stages, &mut Names::new())
}

/// A change for all documents, as stages.
fn stages_of(step: Conversion) -> Vec<Value<'static>> {
    match step {
        Conversion::Edits(edits) => edits.iter().map(|edits| edits.0.stage(None)).collect(),
        Conversion::Stages(stages) => stages,
    }
}

fn pipeline_of(pipelines: &[Pipeline], version: i32) -> Option<&Pipeline> {
    pipelines.get(usize::try_from(version - 1).ok()?)
}

/// Stages that somebody wrote, for some documents only. The others are put aside: no expression is evaluated on them, since it might
/// fail there, and what the stages make of them is thrown away.
fn only_where(condition: &Value<'static>, stages: Vec<Value<'static>>) -> Vec<Value<'static>> {
    let aside = cond(condition.clone(), Value::from("$$REMOVE"), Value::from("$$ROOT"));
    let is_meant = call_with("$eq", [call("$type", field(ASIDE)), Value::from("missing")]);
    let mut all = vec![call("$set", object([(ASIDE, aside)]))];
    for stage in stages {
        let Value::Document(stage) = &stage else { continue };
        for (name, spec) in stage.iter() {
            let spec = match (name.as_str(), spec) {
                ("$set" | "$addFields" | "$project", Value::Document(fields)) => {
                    let fields = fields.iter().map(|(path, value)| {
                        let value = match is_switch(name.as_str(), &value) {
                            true => value.into_owned(),
                            false => cond(is_meant.clone(), value, Value::Null),
                        };
                        (path.to_string(), value)
                    });
                    let fields: Vec<(String, Value<'static>)> = fields.collect();
                    object(fields.iter().map(|(path, value)| (path.as_str(), value.clone())))
                }
                ("$replaceWith", whole) => cond(is_meant.clone(), whole, Value::from("$$ROOT")),
                ("$replaceRoot", Value::Document(root)) => {
                    let whole = root.get("newRoot").unwrap_or(Value::Missing);
                    object([("newRoot", cond(is_meant.clone(), whole, Value::from("$$ROOT")))])
                }
                (_, other) => other.into_owned(),
            };
            all.push(call(name.as_str(), spec));
        }
    }
    let stays = call_with("$ifNull", [field(ASIDE), Value::from("$$ROOT")]);
    all.push(call("$replaceWith", stays));
    all
}

/// Whether a field of `$project` says only that it stays or goes.
fn is_switch(stage: &str, value: &Value<'_>) -> bool {
    stage == "$project" && (value.is_number() || matches!(value, Value::Bool(_)))
}
