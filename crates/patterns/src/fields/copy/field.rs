//! A copy as a [`Field`].

use super::CopyField;
use super::spread::Spread;
use crate::fields::set_paths::Entry;
use crate::rule::field::{ComparisonPipeline, HostStages, Samples, Search};
use crate::rule::obstacle::Arrays;
use crate::rule::{
    Delta, Effect, Effects, Fate, Fences, Fetch, Field, HostField, Link, Obstacle, Reads, Recipe, Rows, Wanted, key,
};
use document::backend::Mode;
use document::filter::Filter;
use document::op::{Aggregate, Change, Find, ReadOp, UpdateStatement};
use document::pipeline::Pipeline;
use document::pipeline::expr::{Names, field_of_document};
use document::update::Update;
use document::value::order;
use document::{Array, Doc, Env, Result, Value};
use smallvec::SmallVec;

impl Field for CopyField {
    fn target(&self) -> &HostField {
        &self.target
    }

    fn link(&self) -> Option<&Link> {
        Some(&self.link)
    }

    fn reads(&self) -> &Reads {
        &self.reads
    }

    fn fences(&self) -> Fences {
        Fences { evaluate: Mode::Shared, change: Some(Mode::Exclusive), unwritten: None }
    }

    fn describe(&self) -> String {
        format!("copy of {} by {}", self.link.source.collection, self.link.by())
    }

    fn instead(&self) -> String {
        format!("write to {} instead", self.link.source.collection)
    }

    fn enters_arrays(&self) -> bool {
        !self.is_plain()
    }

    fn react(&self, change: &Change, _: &Env, effects: &mut Effects) -> Result<()> {
        let keyed = |doc: Option<&Doc<'static>>| doc.and_then(|doc| Some((self.source_key(doc)?, doc.clone())));
        let (old, new) = (keyed(change.before.as_ref()), keyed(change.after.as_ref()));
        let filled = |source: &Doc<'_>, appeared: bool| {
            Effect::Update(Delta::Set { value: Value::Document(self.copy(source)), appeared, children: 0 })
        };
        match (old, new) {
            (None, None) => {}
            (None, Some((key, source))) => effects.push((key, filled(&source, true))),
            (Some((key, _)), None) => effects.push((key, self.vanished())),
            (Some((old_key, _)), Some((key, source))) if !order::equal(&old_key, &key) => {
                effects.push((old_key, self.vanished()));
                effects.push((key, filled(&source, true)));
            }
            (Some((_, before)), Some((key, source))) => {
                if !self.is_frozen() && self.copy(&before) != self.copy(&source) {
                    effects.push((key, filled(&source, false)));
                }
            }
        }
        Ok(())
    }

    /// A source that is there stands for one that had the key before.
    fn combine(&self, first: Delta, second: &Delta) -> Result<Delta> {
        match (&first, second) {
            (Delta::Set { .. }, Delta::Unset) => Ok(first),
            _ => Ok(second.clone()),
        }
    }

    fn variable(&self) -> &str {
        &self.variable
    }

    fn stages(&self, _: &Delta) -> &HostStages {
        &self.stages
    }

    fn constant(&self, delta: &Delta) -> Value<'static> {
        match delta {
            Delta::Set { value, .. } => value.clone(),
            Delta::Unset | Delta::Count(_) | Delta::Numbers(_) | Delta::State(_) | Delta::Items { .. } => Value::Null,
        }
    }

    fn apply<'d>(&'d self, delta: &'d Delta, host: &Doc<'_>, into: &mut SmallVec<[Entry<'d>; 6]>) -> Result<()> {
        let parts = &self.target.path.parts;
        if Obstacle::on_way(host, parts, Arrays::Obstruct).is_some() {
            return Ok(());
        }
        match delta {
            Delta::Set { value, .. } => into.push((parts, value.borrow())),
            Delta::Unset if parts.len() > 1 && field_of_document(host, parts).is_missing() => {}
            Delta::Unset => into.push((parts, Value::Missing)),
            Delta::Count(_) | Delta::Numbers(_) | Delta::State(_) | Delta::Items { .. } => {}
        }
        Ok(())
    }

    /// One that stands in no array: how many copies others have, only the document tells. A frozen one is written where there is none.
    fn merges(&self) -> bool {
        self.is_plain() && !self.is_frozen()
    }

    fn own_statement(&self, key: &Value<'_>, delta: &Delta) -> Result<Option<UpdateStatement>> {
        match delta {
            Delta::Set { value: Value::Document(copy), .. } => self.spread(key, Spread::Fill(copy)).map(Some),
            Delta::Unset => self.spread(key, Spread::Unset).map(Some),
            Delta::Set { .. } | Delta::Count(_) | Delta::Numbers(_) | Delta::State(_) | Delta::Items { .. } => Ok(None),
        }
    }

    fn hosts(&self, key: &Value<'_>) -> Filter {
        Filter::equality(&self.link.local.path.dotted(), key)
    }

    fn keys(&self, host: &Doc<'_>) -> key::Values {
        self.references(host).unwrap_or_default()
    }

    fn wanted(&self, host: &Doc<'_>, before: Option<&Doc<'_>>) -> Result<Wanted> {
        let references = self.references(host)?;
        match before {
            Some(before) if self.is_untouched(host, before, &references) => Ok(Wanted::Nothing),
            _ => Ok(Wanted::Rows(references)),
        }
    }

    fn query(&self, keys: &[Value<'static>], fetch: Fetch) -> Result<ReadOp> {
        if fetch == Fetch::Shortest
            && let Some(find) = self.by_id(keys)?
        {
            return Ok(ReadOp::Find(find));
        }
        if fetch == Fetch::Documents {
            let path = self.matched.path.dotted();
            let filter = match keys {
                [one] => Filter::equality(&path, one),
                all => Filter::among(&path, all.to_vec()),
            };
            return Ok(ReadOp::Find(Find {
                allow_disk_use: false,
                ..Find::matching(self.link.source.clone(), filter)
            }));
        }
        let head: Array<'static> = std::iter::once(key::any_of(&self.matched.path, keys)).collect();
        let head = Pipeline::parse(&head, &mut Names::new())?;
        Ok(ReadOp::Aggregate(Aggregate {
            ns: self.link.source.clone(),
            collectionless: false,
            pipeline: head.then(self.copying()?),
            hint: None,
            allow_disk_use: true,
            collation: None,
        }))
    }

    fn row(&self, document: &Doc<'_>, fetch: Fetch) -> Option<(Value<'static>, Doc<'static>)> {
        let is_row = match fetch {
            Fetch::Rows | Fetch::Shaped => true,
            Fetch::Documents => false,
            Fetch::Shortest => self.matched.path.dotted() != "_id",
        };
        match is_row {
            true => match document.get("copy")? {
                Value::Document(copy) => Some((document.get("_id")?.into_owned(), copy.into_owned())),
                _ => None,
            },
            false => Some((self.source_key(document)?, self.copy(document))),
        }
    }

    fn place(&self, host: &Doc<'_>, before: Option<&Doc<'_>>, rows: &Rows, _: &Env) -> Result<Doc<'static>> {
        self.fill(host, before, rows)?.apply(host)
    }

    fn obstacle(&self, host: &Doc<'_>) -> Option<Obstacle> {
        self.on_way(host)
    }

    fn is_right(&self, host: &Doc<'_>, right: &Doc<'_>) -> bool {
        self.sites(host)
            .iter()
            .zip(self.sites(right))
            .all(|(have, want)| have.copy == want.copy && have.copy.is_missing() == want.copy.is_missing())
    }

    /// The worst fate of a copy that the host has.
    fn fate(&self, host: &Doc<'_>, right: &Doc<'_>) -> Fate {
        let sites = self.sites(host).into_iter().zip(self.sites(right));
        let wrong =
            sites.filter(|(have, want)| have.copy != want.copy || have.copy.is_missing() != want.copy.is_missing());
        wrong.map(|(have, want)| Fate::of_list(&have.copy, &want.copy)).max().unwrap_or(Fate::Right)
    }

    fn correction(&self, host: &Doc<'_>, right: &Doc<'_>) -> Result<Update> {
        self.between(host, right)
    }

    fn holds(&self, host: &Doc<'_>, key: &Value<'_>) -> bool {
        self.holds_copy(host, key)
    }

    fn expected(&self, only_differences: bool) -> Array<'static> {
        self.definition(only_differences)
    }

    fn suspects(&self, search: Search) -> Result<Vec<Value<'static>>> {
        let (mut stages, behind) = search.few_sources.then(|| self.by_pairs()).flatten().unwrap_or_default();
        stages.extend(self.definition(search.in_force).iter());
        if !search.in_force {
            stages.push(crate::fields::differing());
        }
        stages.extend(behind);
        Ok(stages)
    }

    fn comparison(&self, is_indexed: bool) -> Result<Option<Vec<ComparisonPipeline>>> {
        // Without an index each `$lookup` reads the whole source.
        let is_quick = is_indexed || self.matched.path.dotted() == "_id";
        Ok((self.is_plain() && is_quick).then(|| vec![self.compared()]))
    }

    fn samples(&self, sources: &[Doc<'static>], _: &[Doc<'static>], _: &Env) -> Result<Samples> {
        let mut copies: Vec<Value<'static>> = sources.iter().map(|source| Value::Document(self.copy(source))).collect();
        if copies.is_empty() {
            // A document of some kind.
            copies.push(Value::Document(Doc::empty()));
        }
        let values = match self.link.local.each {
            true => vec![crate::mql::list(copies)],
            false => copies,
        };
        // A reference may have no source.
        Ok(Samples { values, optional: true, ..Samples::default() })
    }

    fn recipe(&self) -> Result<Recipe> {
        match self.is_plain() {
            true => Ok(Recipe::Copy {
                stage: self.copying_stage(),
                frozen: self.is_frozen(),
                when_deleted: self.link.when_deleted,
            }),
            false => Ok(Recipe::Unwritten("its copies are in arrays")),
        }
    }
}
