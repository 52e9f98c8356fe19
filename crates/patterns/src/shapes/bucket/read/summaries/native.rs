//! Summaries over raw buckets: a stage that takes stored documents and gives the groups.

use crate::shapes::bucket::read::summaries::SummaryRead;
use crate::shapes::bucket::read::summaries::group_stage::{GroupId, IdPart, Operand};
use crate::shapes::bucket::read::summaries::state::AccumulatorState;
use crate::shapes::bucket::{Body, Bucket, Layout, Readings, Slot, Slots, slot_start};
use document::pipeline::{Pipeline, Rows, Run, Stage, Stream};
use document::value::key;
use document::{Code, Doc, DocWriter, Env, Error, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

impl SummaryRead {
    /// The stages over stored documents that give the answer.
    pub(in super::super) fn native(mut self) -> Pipeline {
        let rest = std::mem::take(&mut self.rest);
        Pipeline::of_stage(self, None).then(rest)
    }
}

impl Stage for SummaryRead {
    fn name(&self) -> &'static str {
        "$group"
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(GroupRows {
            stage: self,
            input: Some(input),
            env: run.env.clone(),
            groups: OpenGroups::default(),
            next: 0,
        }))
    }
}

struct GroupRows {
    stage: Arc<SummaryRead>,
    input: Option<Rows>,
    env: Env,
    groups: OpenGroups,
    next: usize,
}

impl Stream for GroupRows {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(mut input) = self.input.take() {
            let mut seen = 0_usize;
            while let Some(stored) = input.next()? {
                seen += 1;
                if seen.is_multiple_of(256) {
                    (self.env.interrupt)()?;
                }
                self.stage.add(&stored, &mut self.groups)?;
                self.groups.check_memory(self.env.memory_limit)?;
            }
        }
        let group = self.groups.groups.get(self.next);
        self.next += 1;
        Ok(group.map(|group| group.document(&self.stage)))
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

#[derive(Default)]
struct OpenGroups {
    places: HashMap<Vec<u8>, usize>,
    groups: Vec<OpenGroup>,
    bytes: usize,
}

struct OpenGroup {
    id: Value<'static>,
    documents: i64,
    states: Vec<AccumulatorState>,
}

impl OpenGroup {
    fn new(summaries: &SummaryRead, id: Value<'static>) -> OpenGroup {
        let states = summaries.group.fields.iter().map(|field| AccumulatorState::new(field.kind)).collect();
        OpenGroup { id, documents: 0, states }
    }

    fn document(&self, summaries: &SummaryRead) -> Doc<'static> {
        let mut writer = DocWriter::new();
        if summaries.group.shows_id {
            writer.append("_id", &self.id);
        }
        for (field, state) in summaries.group.fields.iter().zip(&self.states) {
            writer.append(&field.name, &state.finish(field, self.documents));
        }
        writer.finish()
    }
}

impl OpenGroups {
    /// Each is counted with what a small state takes.
    const GROUP: usize = 160;

    fn check_memory(&self, limit: usize) -> Result<()> {
        if self.bytes <= limit {
            return Ok(());
        }
        Err(Error::new(
            Code::QueryExceededMemoryLimitNoDiskUseAllowed,
            "Exceeded memory limit for $group over the series of a bucket collection",
        ))
    }

    /// The group of a series; it is kept only if some document comes.
    fn place(&mut self, summaries: &SummaryRead, stored: &Doc<'_>) -> Result<usize> {
        if let (GroupId::Constant(_), true) = (&summaries.group.id, !self.groups.is_empty()) {
            return Ok(0);
        }
        let id = summaries.id_of(stored)?;
        let mut encoded = Vec::new();
        key::encode(&id, &mut encoded);
        if let Some(place) = self.places.get(&encoded) {
            return Ok(*place);
        }
        self.bytes += OpenGroups::GROUP + encoded.len();
        let place = self.groups.len();
        self.groups.push(OpenGroup::new(summaries, id));
        self.places.insert(encoded, place);
        Ok(place)
    }
}

impl SummaryRead {
    fn add(&self, stored: &Doc<'_>, groups: &mut OpenGroups) -> Result<()> {
        let stored = stored.borrow();
        let Some(start) = self.start_of(&stored)? else { return Ok(()) };
        let end = self.bucket.every.next(start);
        let scope = &self.scope;
        if end <= scope.from || start >= scope.to {
            return Ok(());
        }
        if !scope.series.is_all() && !scope.series.matches(&stored, &Env::fixed())? {
            return Ok(());
        }
        let whole = scope.from <= start && end <= scope.to;
        let mut found = Contribution { summaries: self, groups, stored: &stored, place: None };
        match &self.bucket.body {
            Body::Slots(slots) => found.slots(slots, start, whole),
            Body::Readings(readings) => found.readings(readings, start, whole),
        }
    }

    /// When the bucket begins; `None` if it is of another series than those asked for.
    fn start_of(&self, stored: &Doc<'_>) -> Result<Option<i64>> {
        if !self.bucket.packed {
            return Ok(match stored.get(self.bucket.every.name()) {
                Some(Value::DateTime(start)) => Some(start),
                _ => return self.bucket.key_of(stored).map(|(key, _)| Some(key.start)),
            });
        }
        let (key, _) = self.bucket.key_of(stored)?;
        let of_series = |keys: &Vec<Vec<u8>>| match key.series.first() {
            Some(Some(Value::Binary { bytes, .. })) => keys.iter().any(|key| key.as_slice() == bytes.as_slice()),
            _ => false,
        };
        Ok(self.scope.packed.as_ref().is_none_or(of_series).then_some(key.start))
    }

    /// The `_id` of the group that a bucket belongs to.
    fn id_of(&self, stored: &Doc<'_>) -> Result<Value<'static>> {
        let series = |names: &mut dyn FnMut(&Doc<'_>)| -> Result<()> {
            let (key, _) = self.bucket.key_of(stored)?;
            let mut series = DocWriter::new();
            self.bucket.write_logical_series(&mut series, &key);
            names(&series.finish());
            Ok(())
        };
        let mut id = Value::Null;
        match &self.group.id {
            GroupId::Constant(constant) => id = constant.clone(),
            GroupId::Series(field) => series(&mut |doc| id = doc.get(field).unwrap_or(Value::Null).into_owned())?,
            GroupId::Fields(fields) => series(&mut |doc| {
                let mut writer = DocWriter::new();
                for (name, part) in fields {
                    // As in MongoDB, only with several fields is a missing one left out.
                    let missing = if fields.len() == 1 { Value::Null } else { Value::Missing };
                    match part {
                        IdPart::Series(field) => writer.append(name, &doc.get(field).unwrap_or(missing)),
                        IdPart::Constant(value) => writer.append(name, value),
                    };
                }
                id = Value::Document(writer.finish());
            })?,
        }
        Ok(id)
    }
}

/// What one bucket adds.
struct Contribution<'f> {
    summaries: &'f SummaryRead,
    groups: &'f mut OpenGroups,
    stored: &'f Doc<'f>,
    /// Its group, once something of the bucket counts.
    place: Option<usize>,
}

impl Contribution<'_> {
    fn group(&mut self) -> Result<&mut OpenGroup> {
        let place = match self.place {
            Some(place) => place,
            None => self.groups.place(self.summaries, self.stored)?,
        };
        self.place = Some(place);
        self.groups.groups.get_mut(place).ok_or_else(|| Error::new(Code::InternalError, "a group is gone"))
    }

    /// One logical document, by the fields it is stored with.
    fn document(&mut self, fields: &Doc<'_>) -> Result<()> {
        let asked = &self.summaries.group.fields;
        let group = self.group()?;
        group.documents += 1;
        for (name, value) in fields.iter() {
            for (field, state) in asked.iter().zip(&mut group.states) {
                if let Operand::Stored { field, .. } = &field.of
                    && **field == *name.as_str()
                {
                    state.add(&value);
                }
            }
        }
        Ok(())
    }

    fn slots(&mut self, slots: &Slots, start: i64, whole: bool) -> Result<()> {
        let (bucket, scope): (&Bucket, _) = (&self.summaries.bucket, &self.summaries.scope);
        let inside = |at: i64| scope.from <= at && at < scope.to;
        // All slots of such a bucket have its own date.
        let whole = whole || matches!(slots.slot, Slot::Field { .. });
        if matches!(slots.slot, Slot::Field { .. }) && !inside(start) {
            return Ok(());
        }
        match (slots.layout, self.stored.get("items")) {
            (Layout::FieldNames, Some(Value::Document(items))) => {
                for (name, slot) in items.iter() {
                    let Value::Document(slot) = slot else { continue };
                    let counts = match &slots.slot {
                        Slot::Time(grain) if !whole => {
                            slot_start(bucket.every, *grain, start, name.as_str()).is_some_and(inside)
                        }
                        _ => true,
                    };
                    if counts {
                        self.document(&slot)?;
                    }
                }
            }
            (Layout::Array, Some(Value::Array(items))) => {
                for slot in items.iter() {
                    let Value::Document(slot) = slot else { continue };
                    if whole || matches!(slot.get(&bucket.time), Some(Value::DateTime(at)) if inside(at)) {
                        self.document(&slot)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn readings(&mut self, readings: &Readings, start: i64, whole: bool) -> Result<()> {
        let summaries = self.summaries;
        let count = self.stored.get("count").and_then(|count| count.as_i64_exact());
        if count == Some(0) {
            return Ok(());
        }
        if let (true, Some(count)) = (whole, count) {
            let stats = match self.stored.get("stats") {
                Some(Value::Document(stats)) => stats,
                _ => Doc::empty(),
            };
            let group = self.group()?;
            group.documents += count;
            let mut left = Vec::new();
            for (at, (field, state)) in summaries.group.fields.iter().zip(&mut group.states).enumerate() {
                let known = match &field.of {
                    Operand::Each(_) => true,
                    Operand::Stored { stat, .. } => {
                        let figure = stat.as_ref().and_then(|stat| stats.get(stat));
                        figure.is_some_and(|figure| state.take(&figure))
                    }
                };
                if !known {
                    left.push(at);
                }
            }
            return if left.is_empty() { Ok(()) } else { self.one_by_one(&left) };
        }
        let scope = &summaries.scope;
        let Some(Value::Array(elements)) = self.stored.get("readings") else { return Ok(()) };
        for element in elements.iter() {
            let Value::Document(element) = element else { continue };
            let units = element.get(&readings.unit.name).and_then(|offset| offset.as_i64_exact());
            let at = units.and_then(|units| readings.unit.size.after(start, units));
            if at.is_some_and(|at| scope.from <= at && at < scope.to) {
                self.document(&element)?;
            }
        }
        Ok(())
    }

    /// Fields of a whole bucket that have no figure.
    fn one_by_one(&mut self, left: &[usize]) -> Result<()> {
        let summaries = self.summaries;
        let Some(Value::Array(elements)) = self.stored.get("readings") else { return Ok(()) };
        let group = self.group()?;
        for element in elements.iter() {
            let Value::Document(element) = element else { continue };
            for at in left {
                if let (Some(field), Some(state)) = (summaries.group.fields.get(*at), group.states.get_mut(*at))
                    && let Operand::Stored { field, .. } = &field.of
                    && let Some(value) = element.get(field)
                {
                    state.add(&value);
                }
            }
        }
        Ok(())
    }
}
