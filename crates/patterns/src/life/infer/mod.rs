//! `check --infer`: which kinds the documents of a collection have, as a declaration that `check` accepts. Looks at some documents from
//! both ends of the collection, always the same ones, and counts in all of them how many would break what it proposes.

mod profile;
mod yaml;

use crate::declare;
use crate::execute::access::{Access, by_id, find};
use crate::life::install::validators::kept_fields;
use crate::life::preview::count_breaking;
use crate::mql;
use document::filter::Filter;
use document::op::{Find, Namespace, SortSpec};
use document::{Array, Code, Doc, Error, Result, Value};
use profile::Proposal;

/// How many documents are looked at from each end.
const SOME: u64 = 1_000;

/// `{ declaration, discriminator, kinds: [ { kind, documents, required } ], sampled, documents, breaking, notes }`; `declaration` is null
/// if nothing tells kinds apart.
pub(crate) async fn infer(at: &mut Access<'_>, ns: &Namespace) -> Result<Doc<'static>> {
    let some = sample(at, ns).await?;
    if some.is_empty() {
        let message = format!("{ns} has no documents to infer kinds from");
        return Err(Error::new(Code::NamespaceNotFound, message).with_hint("name a collection that has some"));
    }
    let kept = kept_fields(at, ns).await?;
    let sampled = long(some.len() as u64);
    let Some(proposal) = Proposal::of(&some, &kept) else {
        let note = format!(
            "no field of {} tells kinds apart: there is none that every document has, with few texts, and that decides which other fields are there",
            ns.collection
        );
        let notes = mql::list([Value::string(note)]);
        return Ok(mql::document([("declaration", Value::Null), ("sampled", sampled), ("notes", notes)]));
    };
    let text = yaml::declaration(ns, &proposal);
    let checked = declare::from_yaml("inferred", &text).into_result()?;
    let (documents, breaking) = match checked.rules.first() {
        Some(rule) => count_breaking(at, rule, &kept).await?,
        None => (0, 0),
    };
    let mut notes = proposal.notes.clone();
    if breaking > 0 {
        notes.push(format!(
            "{breaking} of {documents} documents are not as proposed: `pleach audit` lists them once it is applied"
        ));
    }
    let kinds = proposal.kinds.iter().map(|kind| {
        let required = kind.required.iter().map(|name| Value::from(&**name)).collect::<Array<'static>>();
        mql::object([
            ("kind", Value::from(&*kind.name)),
            ("documents", long(kind.documents)),
            ("required", Value::Array(required)),
        ])
    });
    Ok(mql::document([
        ("declaration", Value::from(&*text)),
        ("discriminator", Value::from(&*proposal.discriminator)),
        ("kinds", mql::list(kinds)),
        ("sampled", sampled),
        ("documents", long(documents)),
        ("breaking", long(breaking)),
        ("notes", mql::list(notes.iter().map(|note| Value::from(&**note)))),
    ]))
}

async fn sample(at: &mut Access<'_>, ns: &Namespace) -> Result<Vec<Doc<'static>>> {
    let mut all = at.find(Find { limit: Some(SOME), sort: Some(by_id()), ..find(ns, Filter::all()) }).await?;
    if all.len() as u64 == SOME {
        let SortSpec { mut keys } = by_id();
        keys.iter_mut().for_each(|key| key.descending = true);
        let last =
            at.find(Find { limit: Some(SOME), sort: Some(SortSpec { keys }), ..find(ns, Filter::all()) }).await?;
        let is_new = |doc: &Doc<'static>| !all.iter().any(|other| other.get("_id") == doc.get("_id"));
        let new: Vec<Doc<'static>> = last.into_iter().filter(is_new).collect();
        all.extend(new);
    }
    Ok(all)
}

fn long(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}
