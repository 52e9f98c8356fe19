//! `check --infer`: which kinds the documents of a collection have, as a declaration that `check` accepts. Looks at some documents from
//! both ends of the collection and at some at random, and counts in all documents how many would break what it proposes. Reads only.

mod profile;
mod yaml;

use crate::declare;
use crate::execute::access::{Access, aggregate, by_id, find};
use crate::life::install::validators::kept_fields;
use crate::life::preview::count_breaking;
use crate::mql;
use crate::rule::key;
use document::filter::Filter;
use document::op::{Find, Namespace, SortSpec};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Code, Doc, Error, Result, Value};
use profile::Proposal;
use std::collections::BTreeSet;

/// Which kinds some documents have.
#[derive(Clone, Debug)]
pub struct InferredKinds {
    pub discriminator: String,
    pub kinds: Vec<InferredKind>,
    /// As YAML.
    pub declaration: String,
}

#[derive(Clone, Debug)]
pub struct InferredKind {
    pub name: String,
    pub documents: u64,
    /// The fields that some of its documents have, without `_id` and the discriminator.
    pub fields: Vec<String>,
    /// The `_id` of one.
    pub example: Option<Value<'static>>,
}

/// Which kinds these documents have; `None` if nothing tells kinds apart.
pub fn inferred_kinds(ns: &Namespace, documents: &[Doc<'static>]) -> Option<InferredKinds> {
    let proposal = Proposal::of(documents, &[])?;
    let declaration = yaml::declaration(ns, &proposal);
    let is_of = |doc: &&Doc<'static>, name: &str| {
        doc.get(&proposal.discriminator).is_some_and(|kind| kind.as_str() == Some(name))
    };
    let kind = |kind: &profile::KindProfile| InferredKind {
        name: kind.name.clone(),
        documents: kind.documents,
        fields: kind.types.iter().map(|(name, _)| name.clone()).collect(),
        example: documents.iter().find(|doc| is_of(doc, &kind.name)).and_then(|doc| doc.get("_id")),
    };
    let kinds = proposal.kinds.iter().map(kind).collect();
    Some(InferredKinds { kinds, declaration, discriminator: proposal.discriminator })
}

/// How many documents are looked at from each end, and at random.
const EACH_END: u64 = 1_000;
const AT_RANDOM: i64 = 2_000;

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

/// Documents of every age: those at both ends, where `_id`s grow with time, and others at random.
async fn sample(at: &mut Access<'_>, ns: &Namespace) -> Result<Vec<Doc<'static>>> {
    let mut all = at.find(Find { limit: Some(EACH_END), sort: Some(by_id()), ..find(ns, Filter::all()) }).await?;
    if (all.len() as u64) < EACH_END {
        return Ok(all);
    }
    let SortSpec { mut keys } = by_id();
    keys.iter_mut().for_each(|key| key.descending = true);
    let last = Find { limit: Some(EACH_END), sort: Some(SortSpec { keys }), ..find(ns, Filter::all()) };
    let random = [mql::call("$sample", mql::object([("size", Value::Int64(AT_RANDOM))]))].into_iter().collect();
    let random = aggregate(ns, Pipeline::parse(&random, &mut Names::new())?);
    let mut known: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut is_new = |doc: &Doc<'static>| known.insert(key::bytes(&doc.get("_id").unwrap_or(Value::Null)));
    all.retain(&mut is_new);
    all.extend(at.find(last).await?.into_iter().filter(&mut is_new));
    all.extend(at.all(random).await?.into_iter().filter(&mut is_new));
    Ok(all)
}

fn long(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}
