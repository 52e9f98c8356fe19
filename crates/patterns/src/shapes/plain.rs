//! Documents that are stored as clients see them: where a collection comes from before it has a shape, and where it goes back to.

use crate::mql;
use crate::rule::read::{Dialect, Each, ReadShape};
use crate::rule::shape::{
    CommandOptions, DirectAccess, Inserted, LogicalFate, NewDocuments, Place, Rewrite, Shape, Stepped, Stop,
    StoredAccess, StoredChange,
};
use crate::rule::{Flaw, LifeShape, Needs, Stack};
use crate::shapes::evaluate::rewrite::{delete, replace};
use crate::shapes::with_id;
use document::backend::Answer;
use document::filter::Filter;
use document::op::{Insert, Namespace, SortSpec, WriteError, WriteOp, Written};
use document::value::Path;
use document::{Array, Code, Doc, Error, Result, Value};
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Place {
    pub fn plain(stored: Namespace) -> Place {
        Place { stored, shape: Arc::new(Plain) }
    }
}

impl ReadShape for Plain {
    fn view(&self, _dialect: Dialect) -> Array<'static> {
        Array::empty()
    }

    fn decode(&self, stored: &Doc<'_>, each: &mut Each<'_>) -> Result<()> {
        each(stored.clone().into_owned())
    }

    fn push(&self, filter: &Filter) -> Filter {
        filter.clone()
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn keeps(&self, _path: &Path) -> bool {
        true
    }
}

impl LifeShape for Plain {
    fn noun(&self) -> &'static str {
        "documents"
    }

    fn describe(&self) -> String {
        "documents as they are".to_owned()
    }

    fn flaws(&self, _stored: &Doc<'_>) -> Vec<Flaw> {
        Vec::new()
    }

    fn mend(&self, stored: &Doc<'_>) -> Option<Doc<'static>> {
        Some(stored.clone().into_owned())
    }

    fn logical_count(&self) -> Value<'static> {
        Value::Int32(1)
    }

    fn conversion(&self, _from: &dyn Shape, into: &Namespace) -> Vec<Value<'static>> {
        vec![mql::call("$merge", mql::object([("into", Value::from(&*into.collection))]))]
    }
}

impl Shape for Plain {
    fn is_same(&self, other: &dyn Shape) -> bool {
        other.is_plain()
    }

    fn needs(&self, _stored: &Namespace) -> Needs {
        Needs::default()
    }

    fn order(&self) -> SortSpec {
        SortSpec::default()
    }

    fn stored_order(&self) -> Option<SortSpec> {
        None
    }

    fn place_in_order(&self, _stored: &Doc<'static>) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn derives_id(&self) -> bool {
        false
    }

    fn check(&self, logical: &Doc<'static>) -> Result<Value<'static>> {
        Ok(logical.get("_id").unwrap_or(Value::Missing))
    }

    fn as_read(&self, logical: &Doc<'static>) -> Result<Doc<'static>> {
        Ok(logical.clone())
    }

    fn rewrite(&self, _place: &Place, stored: &Doc<'static>, fates: Vec<(usize, LogicalFate)>) -> Result<Rewrite> {
        let id = stored.get("_id").unwrap_or(Value::Missing);
        let change = match fates.into_iter().next() {
            Some((_, LogicalFate::Becomes(after))) => StoredChange::Update(replace(&id, after)?),
            Some((_, LogicalFate::Gone)) => StoredChange::Delete(delete(&id)),
            None => return Err(Error::new(Code::InternalError, "a document that stays as it is was to be rewritten")),
        };
        Ok(Rewrite { change, moved: Vec::new(), host: None })
    }

    fn insert<'a>(
        &'a self,
        at: &'a mut dyn StoredAccess,
        stack: &'a Stack,
        place: &'a Place,
        new: NewDocuments<'a>,
    ) -> Stepped<'a, Inserted> {
        Box::pin(async move {
            let (mut refused, mut places, mut documents) = (Vec::new(), Vec::new(), Vec::new());
            for (index, document) in new.documents {
                // It must fit into the other form, where it will be or was.
                match stack.shape().map_or(Ok(Value::Missing), |shape| shape.check(document)) {
                    Ok(_) => {
                        places.push(*index);
                        documents.push(document.clone());
                    }
                    Err(error) => {
                        refused.push(WriteError { index: *index, error });
                        if new.ordered {
                            break;
                        }
                    }
                }
            }
            if documents.is_empty() {
                return Ok(Inserted { refused, seen: Vec::new() });
            }
            let adds = at.is_watched().then(|| documents.clone());
            let insert = Insert::of(place.stored.clone(), documents);
            let op = WriteOp::Insert(Insert { bypass_validation: new.bypass_validation, ..insert });
            match at.write(&op, adds).await?.errors.into_iter().next() {
                Some(failed) => {
                    let at = places.get(failed.index).copied().unwrap_or_default();
                    Err(Stop::Statement { at, error: failed.error })
                }
                None => Ok(Inserted { refused, seen: Vec::new() }),
            }
        })
    }

    /// A single document, if no other may be the same one.
    fn direct(&self, stack: &Stack, op: &WriteOp, from: usize, in_transaction: bool) -> Range<usize> {
        let is_only_one = matches!(op, WriteOp::Insert(insert) if insert.documents.len() == 1);
        let may_be_elsewhere = stack.shape().is_some_and(|shape| shape.derives_id());
        let is_direct = is_only_one && !in_transaction && !stack.is_source && !may_be_elsewhere;
        from..from + usize::from(is_direct)
    }

    fn run_direct<'a>(
        &'a self,
        at: &'a mut dyn DirectAccess,
        stack: &'a Stack,
        place: &'a Place,
        op: &'a WriteOp,
        statements: Vec<usize>,
    ) -> Answer<'a, Written> {
        Box::pin(async move {
            let (WriteOp::Insert(insert), false) = (op, statements.is_empty()) else { return Ok(Written::default()) };
            let documents: Vec<Doc<'static>> =
                insert.documents.iter().map(|document| with_id(document, &at.context().env)).collect();
            for document in &documents {
                if let Some(Err(error)) = stack.shape().map(|shape| shape.check(document)) {
                    return Ok(Written { errors: vec![WriteError { index: 0, error }], ..Written::default() });
                }
            }
            let how = CommandOptions::of(op);
            at.send(&WriteOp::Insert(Insert {
                ns: place.stored.clone(),
                documents,
                ordered: true,
                bypass_validation: how.bypass_validation,
                statement_ids: how.statement_ids,
            }))
            .await
        })
    }
}
