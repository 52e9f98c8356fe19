//! Indexes that rules need, against those that are there: which of them serve, and what is made beside them.

use crate::execute::access::Access;
use crate::life::expiry;
use crate::life::install::made::MadeIndex;
use crate::life::relocate::stored;
use crate::mql;
use crate::rule::needs::{Direction, REFERENCE_TYPES};
use crate::rule::{IndexNeed, Rule};
use document::op::{AdminOp, Namespace};
use document::value::Path;
use document::{Code, Doc, Error, Result, Value};

/// An index that a rule needs, as it is made if none serves.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedIndex {
    pub(crate) need: IndexNeed,
    pub(crate) name: String,
    /// A unique index on the same paths that does not keep all values apart.
    beside: Option<String>,
}

/// The types that `$type: "number"` means.
pub(super) const NUMBERS: &[&str] = &["double", "int", "long", "decimal"];

impl PlannedIndex {
    pub(crate) fn new(need: IndexNeed) -> PlannedIndex {
        let name = need.name();
        PlannedIndex { need, name, beside: None }
    }

    pub(crate) fn ns(&self) -> &Namespace {
        &self.need.ns
    }

    /// As `createIndexes` takes it.
    pub(crate) fn spec(&self) -> Doc<'static> {
        self.need.spec(&self.name)
    }

    /// Why it is made although there is one that is like it. `None` if there is none.
    pub(crate) fn note(&self) -> Option<String> {
        let (beside, collection, path) = (self.beside.as_ref()?, &self.need.ns.collection, self.need.paths());
        Some(format!(
            "the unique index `{beside}` of `{collection}` leaves values of `{path}` out that a reference may have: one of all values is made beside it"
        ))
    }

    /// `{ createIndexes: …, indexes: […] }`: what a person would run.
    pub(crate) fn command(&self) -> Doc<'static> {
        let indexes = mql::list([Value::Document(self.spec())]);
        mql::document([("createIndexes", Value::from(&*self.need.ns.collection)), ("indexes", indexes)])
    }

    /// An index of that name is there, and is another one: it stays.
    fn with_free_name(mut self, there: &[Doc<'static>]) -> PlannedIndex {
        let is_taken = |name: &str| there.iter().any(|index| name_of(index).is_some_and(|own| own == name));
        let plain = self.name.clone();
        for number in 1.. {
            if !is_taken(&self.name) {
                break;
            }
            self.name = if number == 1 { format!("{plain}_pleach") } else { format!("{plain}_pleach_{number}") };
        }
        self
    }
}

/// Whether an index that is there is as good as one that is made for the need.
pub(crate) fn serves(need: &IndexNeed, index: &Doc<'_>) -> bool {
    if !need.text.is_empty() {
        return searches(need, index);
    }
    let Some(key) = compared(need, index) else { return false };
    let expires = match need.expire_after {
        None => true,
        Some(seconds) => {
            key.is_exact() && index.get("expireAfterSeconds").is_some_and(|after| after.as_i64_exact() == Some(seconds))
        }
    };
    let serves = match need.unique {
        // Only one of exactly these paths keeps values apart.
        true => has(index, "unique") && key.is_exact(),
        // An index of more paths finds as well.
        false => !has(index, "hidden") && key.is_led && key.is_in_order,
    };
    serves && expires && !index.contains("collation") && holds_all(need, index)
}

/// Whether it finds words in the same fields, and weighs them as well.
fn searches(need: &IndexNeed, index: &Doc<'_>) -> bool {
    let Some(Value::Document(weights)) = index.get("weights") else { return false };
    let weighs = |(path, weight): &(Path, i32)| {
        weights.get(&path.dotted()).is_some_and(|own| own.as_i64_exact() == Some(i64::from(*weight)))
    };
    weights.iter().count() == need.text.len() && need.text.iter().all(weighs) && holds_all(need, index)
}

/// Whether it is of use for the need; a unique one is found by another index where it finds nothing itself.
pub(crate) fn is_of_use(need: &IndexNeed, index: &Doc<'_>) -> bool {
    serves(need, index) || finding(need).is_some_and(|finding| serves(&finding, index))
}

/// By which references find their document beside an index that only keeps them apart.
fn finding(need: &IndexNeed) -> Option<IndexNeed> {
    let partial = need.partial.as_ref().filter(|_| need.unique)?;
    let keys = need.keys.iter().map(|(path, _)| path.clone());
    is_about_presence(need, partial).then(|| IndexNeed::lookup(&need.ns, keys))
}

/// How the key of an index begins, against that of a need.
struct ComparedKey {
    /// All paths of the need come first.
    is_led: bool,
    /// And there are no others.
    has_no_more: bool,
    /// Read forwards or backwards, it has the order of the need.
    is_in_order: bool,
}

impl ComparedKey {
    fn is_exact(&self) -> bool {
        self.is_led && self.has_no_more
    }
}

fn compared(need: &IndexNeed, index: &Doc<'_>) -> Option<ComparedKey> {
    let Some(Value::Document(key)) = index.get("key") else { return None };
    let keys: Vec<_> = key.iter().collect();
    let is_led = keys.len() >= need.keys.len()
        && need
            .keys
            .iter()
            .zip(&keys)
            .all(|((path, _), (name, order))| path.dotted() == name.as_str() && order.is_number());
    let turned = |((_, direction), (_, order)): (&(Path, Direction), &(_, Value<'_>))| match direction {
        Direction::Any => None,
        _ => Some(order.as_number().is_some_and(|order| order.to_i64_saturated() < 0) != (direction.number() < 0)),
    };
    let mut turned = need.keys.iter().zip(&keys).filter_map(turned);
    let first = turned.next();
    let is_in_order = turned.all(|turned| Some(turned) == first);
    Some(ComparedKey { is_led, has_no_more: keys.len() == need.keys.len(), is_in_order })
}

/// Whether all documents are in the index that the need is about.
fn holds_all(need: &IndexNeed, index: &Doc<'_>) -> bool {
    let (sparse, partial) = (has(index, "sparse"), index.get("partialFilterExpression"));
    if !sparse && partial.is_none() {
        return true;
    }
    let (Some(wanted), None | Some(Value::Document(_))) = (&need.partial, &partial) else { return false };
    // No reference means a document without the field, or with null.
    let leaves_absent_out = need.unique && is_about_presence(need, wanted);
    match partial {
        Some(Value::Document(filter)) => filter == *wanted || (leaves_absent_out && is_about_presence(need, &filter)),
        _ => leaves_absent_out,
    }
}

/// Whether it keeps some values apart, and leaves others out.
fn almost_serves(need: &IndexNeed, index: &Doc<'_>) -> bool {
    has(index, "unique")
        && index.contains("partialFilterExpression")
        && compared(need, index).is_some_and(|key| key.is_exact())
}

/// Whether a partial filter only asks that the fields are there, or that they are not null.
fn is_about_presence(need: &IndexNeed, filter: &Doc<'_>) -> bool {
    filter.iter().all(|(path, test)| {
        let Value::Document(tests) = test else { return false };
        need.keys.iter().any(|(own, _)| own.dotted() == path.as_str())
            && tests.iter().all(|(operator, operand)| match operator.as_str() {
                "$exists" => operand.is_truthy(),
                "$type" => are_all_types(&operand),
                _ => false,
            })
    })
}

/// Whether MongoDB finds references by an index that keeps them apart.
fn finds_by(index: &Doc<'_>) -> bool {
    let by_type = match index.get("partialFilterExpression") {
        Some(Value::Document(filter)) => {
            filter.iter().any(|(_, test)| matches!(test, Value::Document(test) if test.contains("$type")))
        }
        _ => false,
    };
    !by_type && !has(index, "hidden")
}

/// Whether the operand of `$type` has every type that a reference can have.
fn are_all_types(operand: &Value<'_>) -> bool {
    let types: Vec<Value<'static>> = match operand {
        Value::Array(types) => types.iter().map(Value::into_owned).collect(),
        one => vec![one.clone().into_owned()],
    };
    let is_named = |name: &str| types.iter().any(|own| own.as_str() == Some(name));
    REFERENCE_TYPES.iter().all(|(name, number)| {
        is_named(name)
            || types.iter().any(|own| own.as_i64_exact() == Some(*number))
            || (NUMBERS.contains(name) && is_named("number"))
    })
}

fn has(index: &Doc<'_>, option: &str) -> bool {
    index.get(option).is_some_and(|value| value.is_truthy())
}

/// What a rule needs and is not there yet.
pub(crate) async fn missing(at: &mut Access<'_>, rule: &Rule) -> Result<Vec<PlannedIndex>> {
    missing_beside(at, rule, &[], &[]).await
}

/// What a rule, one of these, needs and is neither there nor planned for another.
pub(crate) async fn missing_beside(
    at: &mut Access<'_>,
    rule: &Rule,
    rules: &[Rule],
    planned: &[&PlannedIndex],
) -> Result<Vec<PlannedIndex>> {
    let mut list: Vec<PlannedIndex> = Vec::new();
    for need in rule.needed_indexes(rules.iter()) {
        // Of a collection in another form: its shape has the indexes that find its documents.
        if rule.link().is_some() && stored::look_up(at, &need.ns).await?.is_some_and(|found| found.is_view()) {
            continue;
        }
        let mut there = expiry::indexes(at, &need.ns).await?;
        let all = planned.iter().copied().chain(&list).filter(|other| *other.ns() == need.ns);
        there.extend(all.map(PlannedIndex::spec));
        list.extend(unserved(need, there));
    }
    Ok(list)
}

/// What has to be made beside the indexes that are there. MongoDB finds nothing by a unique index that leaves null alone: a plain
/// one is needed for that.
pub(super) fn unserved(need: IndexNeed, mut there: Vec<Doc<'static>>) -> Vec<PlannedIndex> {
    let (mut list, finding) = (Vec::new(), finding(&need));
    let serving: Vec<_> = there.iter().filter(|index| serves(&need, index)).collect();
    if serving.iter().any(|index| finding.is_none() || finds_by(index)) {
        return list;
    }
    if serving.is_empty() {
        let is_told = !need.unique && need.partial.is_none() || finding.is_some();
        let beside = there.iter().find(|index| is_told && almost_serves(&need, index)).and_then(name_of);
        let planned = PlannedIndex { beside, ..PlannedIndex::new(need) }.with_free_name(&there);
        there.push(planned.spec());
        list.push(planned);
    }
    if let Some(finding) = finding.filter(|finding| !there.iter().any(|index| serves(finding, index))) {
        list.push(PlannedIndex::new(finding).with_free_name(&there));
    }
    list
}

fn name_of(index: &Doc<'static>) -> Option<String> {
    index.get("name")?.as_str().map(str::to_owned)
}

/// Makes an index that a rule needs, and remembers that. An index that cannot be made leaves nothing behind.
pub(super) async fn create(at: &mut Access<'_>, rule: &Rule, planned: &PlannedIndex) -> Result<()> {
    let made = MadeIndex::of(planned);
    // Before it is there: what a stop leaves behind is known to be ours.
    made.save(at).await?;
    let op = AdminOp::CreateIndexes { ns: planned.ns().clone(), indexes: vec![planned.spec()] };
    match at.backend.admin(at.session, at.context, op).await {
        Ok(_) => Ok(()),
        Err(error) => {
            made.forget(at).await?;
            Err(explained(error, rule, &planned.need))
        }
    }
}

fn explained(error: Error, rule: &Rule, need: &IndexNeed) -> Error {
    if error.code() == Code::CannotIndexParallelArrays {
        let (ns, paths) = (&need.ns, need.paths());
        let message = format!(
            "rule {} needs an index on {paths} of {ns}, and a document has arrays in several of these fields",
            rule.name
        );
        return Error::new(Code::CannotIndexParallelArrays, message).with_hint(format!(
            "MongoDB neither sorts by two arrays nor indexes them: find such documents with `$type: \"array\"` in {}",
            ns.collection
        ));
    }
    if error.code() != Code::DuplicateKey {
        return error.context(&format!("rule {} needs an index on {}: ", rule.name, need.ns));
    }
    let (ns, path) = (&need.ns, need.paths());
    let example = error.message().split_once("dup key: ").map_or("", |(_, example)| example);
    let message = format!(
        "rule {} needs a unique index on {path} of {ns}, and several documents have the same value, such as {example}",
        rule.name
    );
    Error::new(Code::DuplicateKey, message).with_hint(match rule.constraint() {
        Some(_) => format!("make {path} unique in {}, or leave out `unique`", ns.collection),
        None => format!("make {path} unique in {}, or match on another field", ns.collection),
    })
}

/// Drops an index again, and the collection if it was made with it. What fails stays: the error that led here is told.
async fn undo(at: &mut Access<'_>, planned: &PlannedIndex, is_new: bool) {
    let (ns, name) = (planned.ns(), &planned.name);
    let op = AdminOp::DropIndexes { ns: ns.clone(), which: Value::string(name.clone()) };
    if let Err(error) = at.backend.admin(at.session, at.context, op).await {
        tracing::warn!(%error, index = name, collection = %ns, "the index could not be dropped again");
    }
    if is_new && matches!(stored::is_empty(at, ns).await, Ok(true)) {
        let dropped = stored::drop_if_there(at, ns).await;
        if let Err(error) = dropped {
            tracing::warn!(%error, collection = %ns, "the empty collection could not be dropped again");
        }
    }
}

/// Makes the indexes that rules need. If one cannot be made, those that were made before it are dropped again.
pub(crate) async fn create_all(at: &mut Access<'_>, planned: &[(&Rule, &PlannedIndex)]) -> Result<()> {
    let of = |unique: bool| planned.iter().filter(move |(_, planned)| planned.need.unique == unique);
    let mut made = Vec::new();
    // Those that may fail come first.
    for (rule, planned) in of(true).chain(of(false)) {
        let is_new = stored::look_up(at, planned.ns()).await?.is_none();
        match create(at, rule, planned).await {
            Ok(()) => made.push((planned, is_new)),
            Err(error) => {
                for (planned, is_new) in made.into_iter().rev() {
                    undo(at, planned, is_new).await;
                }
                return Err(error);
            }
        }
    }
    Ok(())
}
