//! Running `$group`: a table of groups, and on disk what does not fit.
//!
//! A document of a known group costs no allocation here. When the groups take too much memory, the documents that follow are
//! written to files by the hash of their key, and each file is then grouped by itself, beginning with the groups that have
//! been seen of it. So every group sees its documents in the order they came in, and no state is ever written.

use super::expr::Scope;
use super::expr::accumulator::Accumulator;
use super::group::{Group, KeyValues, null_if_missing};
use super::rows::drain;
use super::{Rows, Stream};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Doc, DocWriter};
use crate::spill::{Spill, SpillFile};
use crate::value::{Value, key};
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

/// Into how many files documents are divided, and how often what was divided may be divided again.
const FILES: usize = 32;
const MAX_LEVEL: u32 = 4;

pub(super) fn start(stage: Arc<Group>, input: Rows, env: &Env) -> Rows {
    let grouping =
        Grouping { stage, input: Some(input), env: env.clone(), groups: Groups::default(), next: 0, parts: Vec::new() };
    Box::new(grouping)
}

struct Grouping {
    stage: Arc<Group>,
    input: Option<Rows>,
    env: Env,
    groups: Groups,
    next: usize,
    /// What is still to be grouped.
    parts: Vec<Part>,
}

/// Documents on disk, and what has been seen of their groups.
struct Part {
    file: Box<dyn SpillFile>,
    groups: Groups,
    level: u32,
}

impl Stream for Grouping {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            self.group(&mut *input, 0)?;
        }
        loop {
            let at = self.next;
            self.next += 1;
            if let Some(doc) = self.groups.finish(&self.stage, at)? {
                return Ok(Some(doc));
            }
            let Some(Part { file, groups, level }) = self.parts.pop() else { return Ok(None) };
            (self.groups, self.next) = (groups, 0);
            self.group(&mut Written(file), level)?;
        }
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

/// The documents of a file.
struct Written(Box<dyn SpillFile>);

impl Stream for Written {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        Ok(self.0.next()?.map(|bytes| Doc::trusted_bytes(bytes.into())))
    }

    fn pause(&mut self) {}
}

impl Grouping {
    /// Adds all documents to the groups; what does not fit becomes parts.
    fn group(&mut self, input: &mut dyn Stream, level: u32) -> Result<()> {
        let Grouping { stage, env, groups, .. } = self;
        let spill = env.spill.as_ref().filter(|_| level < MAX_LEVEL);
        let memory = spill.map_or(env.memory_limit, |spill| spill.memory());
        let mut divided: Option<Divided> = None;
        drain(input, env, |doc| {
            if let Some(divided) = &mut divided {
                return divided.add(groups, stage, &doc, env);
            }
            groups.add(stage, &doc, env)?;
            // One group alone cannot be divided.
            match spill {
                Some(spill) if groups.bytes() > memory && groups.groups.len() > 1 => {
                    divided = Some(Divided::new(spill.clone(), level));
                    Ok(())
                }
                None => groups.check_memory(memory),
                Some(_) => Ok(()),
            }
        })?;
        if let Some(divided) = divided {
            let stays = divided.stays(stage);
            let groups = if stays { Groups::default() } else { std::mem::take(groups) };
            let (rest, parts) = divided.finish(groups, stage.fields.len())?;
            if !stays {
                self.groups = rest;
            }
            self.parts.extend(parts);
        }
        Ok(())
    }
}

/// Documents being written to files by the hash of their key.
struct Divided {
    spill: Arc<dyn Spill>,
    level: u32,
    hasher: foldhash::fast::FixedState,
    files: Vec<Option<Box<dyn SpillFile>>>,
}

impl Divided {
    fn new(spill: Arc<dyn Spill>, level: u32) -> Divided {
        let files = (0..FILES).map(|_| None).collect();
        // Another division at each level.
        Divided { spill, level, hasher: foldhash::fast::FixedState::with_seed(u64::from(level)), files }
    }

    /// Whether the groups in memory go on taking documents: only if they do not grow by it.
    fn stays(&self, stage: &Group) -> bool {
        stage.fields.iter().all(|field| field.constant_size)
    }

    fn place(&self, key: &[u8]) -> usize {
        usize::try_from(self.hasher.hash_one(key) >> 32).unwrap_or_default() % FILES
    }

    fn add(&mut self, groups: &mut Groups, stage: &Group, doc: &Doc<'_>, env: &Env) -> Result<()> {
        let mut scope = Scope::new(doc.borrow(), env);
        groups.encode(&stage.key.eval(&mut scope)?);
        if self.stays(stage)
            && let Some(at) = groups.find()
        {
            return groups.accumulate(stage, at, &mut scope);
        }
        let place = self.place(&groups.buffer);
        let Some(file) = self.files.get_mut(place) else { return Ok(()) };
        match file {
            Some(file) => file.append(doc.as_bytes()),
            None => file.insert(self.spill.file()?).append(doc.as_bytes()),
        }
    }

    /// The parts, with those of `groups` that belong to them, and the groups that belong to none.
    fn finish(mut self, groups: Groups, fields: usize) -> Result<(Groups, Vec<Part>)> {
        let mut seen: Vec<Groups> = (0..FILES).map(|_| Groups::default()).collect();
        let mut rest = Groups::default();
        let mut states = groups.states.into_iter();
        for group in groups.groups {
            let key = groups.keys.get(group.key).unwrap_or_default();
            let place = self.place(key);
            let of_part = self.files.get(place).is_some_and(Option::is_some);
            let to = seen.get_mut(place).filter(|_| of_part).unwrap_or(&mut rest);
            to.insert(key, group.id, states.by_ref().take(fields));
        }
        let mut parts = Vec::new();
        for (file, groups) in self.files.drain(..).zip(seen) {
            if let Some(mut file) = file {
                file.rewind()?;
                parts.push(Part { file, groups, level: self.level + 1 });
            }
        }
        Ok((rest, parts))
    }
}

#[derive(Default)]
struct Groups {
    /// Places in `groups`, by the hash of their keys.
    table: HashTable<usize>,
    hasher: foldhash::fast::RandomState,
    /// All encoded keys, one behind the other.
    keys: Vec<u8>,
    groups: Vec<GroupEntry>,
    /// The states of all groups, as many for each as there are fields.
    states: Vec<Box<dyn Accumulator>>,
    /// The key of the document at hand; kept for its storage.
    buffer: Vec<u8>,
    /// What identifiers and states hold.
    bytes: usize,
}

struct GroupEntry {
    key: Range<usize>,
    id: Value<'static>,
}

impl Groups {
    fn add(&mut self, stage: &Group, doc: &Doc<'_>, env: &Env) -> Result<()> {
        let mut scope = Scope::new(doc.borrow(), env);
        let values = stage.key.eval(&mut scope)?;
        self.encode(&values);
        let at = match self.find() {
            Some(at) => at,
            None => self.begin(stage, values, env)?,
        };
        self.accumulate(stage, at, &mut scope)
    }

    /// Puts the key of the document at hand into `buffer`.
    fn encode(&mut self, values: &KeyValues<'_>) {
        self.buffer.clear();
        for value in values {
            key::encode(value, &mut self.buffer);
        }
    }

    fn accumulate<'a>(&mut self, stage: &'a Group, at: usize, scope: &mut Scope<'a>) -> Result<()> {
        let first = at * stage.fields.len();
        let states = self.states.get_mut(first..first + stage.fields.len()).unwrap_or_default();
        for (field, state) in stage.fields.iter().zip(states) {
            if field.constant_size {
                field.accumulator.add(&mut **state, scope)?;
                continue;
            }
            let before = state.memory();
            field.accumulator.add(&mut **state, scope).map_err(|error| field.as_in_a_group(error))?;
            self.bytes = (self.bytes + state.memory()).saturating_sub(before);
        }
        Ok(())
    }

    /// The group of the key in `buffer`, if there is one.
    fn find(&self) -> Option<usize> {
        let Groups { table, hasher, keys, groups, buffer, .. } = self;
        let key_of = |at: &usize| groups.get(*at).and_then(|group| keys.get(group.key.clone()));
        table.find(hasher.hash_one(buffer.as_slice()), |at| key_of(at) == Some(buffer.as_slice())).copied()
    }

    /// Begins the group of the key in `buffer`.
    fn begin(&mut self, stage: &Group, values: KeyValues<'_>, env: &Env) -> Result<usize> {
        let id = stage.key.to_id(values);
        let fields = stage.fields.iter().map(|field| field.accumulator.start(&id, env));
        let states = fields.collect::<Result<SmallVec<[Box<dyn Accumulator>; 4]>>>()?;
        let key = std::mem::take(&mut self.buffer);
        let at = self.insert(&key, id, states.into_iter());
        self.buffer = key;
        Ok(at)
    }

    fn insert(&mut self, key: &[u8], id: Value<'static>, states: impl Iterator<Item = Box<dyn Accumulator>>) -> usize {
        let Groups { table, hasher, keys, groups, .. } = self;
        let at = groups.len();
        table.insert_unique(hasher.hash_one(key), at, |at| {
            hasher.hash_one(groups.get(*at).and_then(|group| keys.get(group.key.clone())).unwrap_or_default())
        });
        self.bytes += size_of::<GroupEntry>() + id_bytes(&id);
        groups.push(GroupEntry { key: keys.len()..keys.len() + key.len(), id });
        keys.extend_from_slice(key);
        for state in states {
            self.bytes += size_of::<Box<dyn Accumulator>>() + state.memory();
            self.states.push(state);
        }
        at
    }

    fn bytes(&self) -> usize {
        self.bytes + self.keys.len()
    }

    fn check_memory(&self, limit: usize) -> Result<()> {
        if self.bytes() <= limit {
            return Ok(());
        }
        Err(Error::new(
            Code::QueryExceededMemoryLimitNoDiskUseAllowed,
            "Exceeded memory limit for $group, but didn't allow external spilling; pass allowDiskUse:true to opt in",
        ))
    }

    /// The document of a group; nothing behind the last.
    fn finish(&mut self, stage: &Group, at: usize) -> Result<Option<Doc<'static>>> {
        let Some(group) = self.groups.get(at) else { return Ok(None) };
        let mut writer = DocWriter::new();
        writer.append("_id", &group.id);
        let first = at * stage.fields.len();
        let states = self.states.get_mut(first..first + stage.fields.len()).unwrap_or_default();
        for (field, state) in stage.fields.iter().zip(states) {
            writer.append(&field.name, &null_if_missing(state.finish()?));
        }
        Ok(Some(writer.finish()))
    }
}

fn id_bytes(id: &Value<'_>) -> usize {
    match id {
        Value::String(text) => text.as_bytes().len(),
        Value::Document(doc) => doc.as_bytes().len(),
        Value::Array(array) => array.as_bytes().len(),
        Value::Binary { bytes, .. } => bytes.as_slice().len(),
        _ => 0,
    }
}
