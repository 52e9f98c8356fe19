//! Makes one host and its overflow what the rule asks for, in a transaction that has read both.

use crate::execute::access::{Access, aggregate, find, update_one, update_op};
use crate::execute::outlier::owners::{by_index, of_owner};
use crate::mql::{call, document, field, object};
use crate::rule::Outlier;
use document::filter::Filter;
use document::op::Find;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Doc, DocWriter, Result, Value};

/// So many items are moved in one transaction …
const ITEMS: usize = 20_000;
/// … of about so many bytes.
const BYTES: usize = 4 << 20;

/// A document may have so many bytes; a little is left for other fields.
const LARGEST: usize = (16 << 20) - (64 << 10);

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arranged {
    /// It is as it should be.
    Done,
    /// More items are to be moved, in another transaction.
    More,
    /// What is in the overflow does not fit into the document.
    TooLarge,
}

/// Of some hosts how many items are in the overflow.
pub(crate) async fn counts(
    at: &mut Access<'_>,
    outlier: &Outlier,
    owners: Vec<Value<'static>>,
) -> Result<Vec<(Value<'static>, u64)>> {
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    let among = Filter::among(&outlier.owner, owners).source;
    let group = object([("_id", field(&outlier.owner)), ("n", call("$sum", Value::Int32(1)))]);
    let stages = [call("$match", Value::Document(among)), call("$group", group)];
    let pipeline = Pipeline::parse(&stages.into_iter().collect(), &mut Names::new())?;
    let rows = at.all(aggregate(&outlier.overflow, pipeline)).await?;
    let row = |row: &Doc<'static>| {
        let number = row.get("n").and_then(|number| number.as_i64_exact()).unwrap_or_default();
        Some((row.get("_id")?, u64::try_from(number).unwrap_or_default()))
    };
    Ok(rows.iter().filter_map(row).collect())
}

/// Makes a host right, as far as one transaction goes. `overflow` is how many items of it are there.
pub(crate) async fn arrange(
    at: &mut Access<'_>,
    outlier: &Outlier,
    host: &Doc<'static>,
    overflow: u64,
) -> Result<Arranged> {
    let stored = outlier.read(host);
    let owner = host.get("_id").unwrap_or(Value::Missing);
    let Some(mut items) = stored.items else {
        // What overflowed before the field became something else belongs to no array.
        if overflow > 0 {
            at.delete(&outlier.overflow, of_owner(outlier, &owner)).await?;
        }
        return write(at, outlier, host, &outlier.with(host, None, 0)).await.map(|()| Arranged::Done);
    };
    let keep = outlier.embedded(&items);
    let mut arranged = Arranged::Done;
    let (mut spilt, mut returned) = (0, 0);
    if keep < items.len() {
        // From the end, so that the order holds after every step.
        let from = last_items(&items, keep);
        let rest = items.split_off(from);
        let env = &at.context.env;
        let document = |(index, item): (u64, &Value<'static>)| outlier.overflow_document(&owner, index, item, env);
        let documents: Vec<Doc<'static>> = (from as u64..).zip(&rest).map(document).collect();
        spilt = documents.len() as u64;
        at.insert(&outlier.overflow, documents).await?;
        if from > keep {
            arranged = Arranged::More;
        }
    } else if overflow > 0 && keep < outlier.keep {
        let room = outlier.keep.saturating_sub(keep).min(ITEMS);
        let first = Find {
            sort: Some(by_index(false)),
            limit: Some(room as u64),
            ..find(&outlier.overflow, of_owner(outlier, &owner))
        };
        let first = at.find(first).await?;
        let mut bytes = host.as_bytes().len();
        let (mut taken, mut moved) = (Vec::new(), 0);
        for document in &first {
            let item = document.get(&outlier.item).unwrap_or(Value::Null);
            moved += document.as_bytes().len();
            bytes += document.as_bytes().len();
            items.push(item);
            if bytes > LARGEST || outlier.embedded(&items) < items.len() {
                items.pop();
                arranged = if outlier.has_limit() { Arranged::Done } else { Arranged::TooLarge };
                break;
            }
            taken.extend(document.get("_id"));
            if moved > BYTES {
                arranged = Arranged::More;
                break;
            }
        }
        returned = taken.len() as u64;
        if arranged == Arranged::Done && first.len() == room && overflow > returned && room == ITEMS {
            arranged = Arranged::More;
        }
        if !taken.is_empty() {
            at.delete(&outlier.overflow, Filter::among("_id", taken)).await?;
        }
    }
    let after = outlier.with(host, Some(&items), (overflow + spilt).saturating_sub(returned));
    write(at, outlier, host, &after).await?;
    Ok(arranged)
}

/// Where the items begin that are moved to the overflow first.
fn last_items(items: &[Value<'static>], keep: usize) -> usize {
    let (mut from, mut bytes) = (items.len(), 0);
    for item in items.iter().skip(keep).rev() {
        if items.len() - from >= ITEMS || bytes > BYTES {
            break;
        }
        let mut writer = DocWriter::new();
        bytes += writer.append("", item).len();
        from -= 1;
    }
    from
}

/// Writes what differs: the array only if it does.
async fn write(at: &mut Access<'_>, outlier: &Outlier, host: &Doc<'static>, after: &Doc<'static>) -> Result<()> {
    if host.as_bytes() == after.as_bytes() {
        return Ok(());
    }
    let (mut set, mut unset) = (DocWriter::new(), DocWriter::new());
    for name in [&outlier.field, &outlier.flag, &outlier.count] {
        match (host.get(name), after.get(name)) {
            (Some(_), None) => drop(unset.append(name, &Value::from(""))),
            (was, Some(is)) if was.as_ref() != Some(&is) => drop(set.append(name, &is)),
            _ => {}
        }
    }
    let parts = [("$set", set), ("$unset", unset)];
    let parts = parts.into_iter().filter(|(_, fields)| !fields.is_empty());
    let spec = document(parts.map(|(operator, fields)| (operator, Value::Document(fields.finish()))));
    if spec.is_empty() {
        return Ok(());
    }
    let update = Update::parse(&Value::Document(spec), &[], &mut Names::new())?;
    let id = host.get("_id").unwrap_or(Value::Missing);
    at.write(&update_op(&outlier.host, vec![update_one(Filter::equality("_id", &id), update)])).await.map(drop)
}
