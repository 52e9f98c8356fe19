//! What a team writes by hand for each layout: the upsert of an event, and the pipeline of a report.

use super::calendar::Day;
use super::events::{Event, Status, date};
use super::layout::Layout;
use super::template;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};

pub(crate) const COLLECTION: &str = "events";

/// One statement of `update`, with placeholders for `_id` and date.
pub(crate) fn upsert(layout: Layout, event: &Event) -> Document {
    let short = event.status.short();
    let update: Bson = match layout {
        Layout::Day => doc! { "$inc": { short: 1 } }.into(),
        Layout::Array => add_to_array(short).into(),
        Layout::Month | Layout::Quarter => {
            let slot = layout.slot(event.day).unwrap_or_default();
            doc! { "$inc": { format!("items.{slot}.{short}"): 1 } }.into()
        }
    };
    doc! { "q": { "_id": template::id(layout) }, "u": update, "upsert": true }
}

/// Adds to the day's element, or appends one: V5R3's update pipeline.
fn add_to_array(short: &str) -> Vec<Document> {
    let this = format!("$$this.{short}");
    let added = doc! { "$mergeObjects": ["$$this", { short: { "$add": [{ "$ifNull": [this, 0] }, 1] } }] };
    let step = doc! { "$cond": {
        "if": { "$eq": ["$$this.date", template::day()] },
        "then": { "found": true, "items": { "$concatArrays": ["$$value.items", [added]] } },
        "else": { "found": "$$value.found", "items": { "$concatArrays": ["$$value.items", ["$$this"]] } },
    } };
    let reduced = doc! { "$reduce": {
        "input": { "$ifNull": ["$items", []] },
        "initialValue": { "found": false, "items": [] },
        "in": step,
    } };
    let new = doc! { "date": template::day(), short: 1 };
    vec![
        doc! { "$set": { "result": reduced } },
        doc! { "$set": { "items": { "$cond": {
            "if": "$result.found",
            "then": "$result.items",
            "else": { "$concatArrays": ["$result.items", [new]] },
        } } } },
        doc! { "$unset": ["result"] },
    ]
}

/// The pipeline of one report over `[start, end)`.
pub(crate) fn report(layout: Layout, key: u32, start: Day, end: Day) -> Vec<Document> {
    let id = |day: Day| Binary { subtype: BinarySubtype::Generic, bytes: layout.id(key, day) };
    match layout {
        Layout::Day => vec![doc! { "$match": { "_id": { "$gte": id(start), "$lt": id(end) } } }, group("$")],
        Layout::Array => {
            let within = doc! { "$and": [
                { "$gte": ["$$this.date", date(start)] },
                { "$lt": ["$$this.date", date(end)] },
            ] };
            let counted = doc! { "$cond": [within, add_up("$$this"), "$$value"] };
            vec![in_range(id(start), id(end)), totals("$items".into(), counted), group("$totals.")]
        }
        Layout::Month | Layout::Quarter => {
            let (from, to) = (layout.slot(start).unwrap_or_default(), layout.slot(end).unwrap_or_default());
            // The first and the last document by the names of their days, those between whole.
            let within = doc! { "$and": [
                { "$or": [{ "$ne": ["$_id", id(start)] }, { "$gte": ["$$this.k", from] }] },
                { "$or": [{ "$ne": ["$_id", id(end)] }, { "$lt": ["$$this.k", to] }] },
            ] };
            let sum = |input: Bson, step: Document| doc! { "$reduce": { "input": input, "initialValue": zeros(), "in": step } };
            let days = doc! { "$objectToArray": "$items" };
            let edge = doc! { "$in": ["$_id", [id(start), id(end)]] };
            let by_name = sum(days.clone().into(), doc! { "$cond": [within, add_up("$$this.v"), "$$value"] });
            let whole = sum(days.into(), add_up("$$this.v"));
            let totals = doc! { "$addFields": { "totals": { "$cond": [edge, by_name, whole] } } };
            vec![in_range(id(start), id(end)), totals, group("$totals.")]
        }
    }
}

fn in_range(first: Binary, last: Binary) -> Document {
    doc! { "$match": { "_id": { "$gte": first, "$lte": last } } }
}

fn totals(input: Bson, step: Document) -> Document {
    doc! { "$addFields": { "totals": { "$reduce": { "input": input, "initialValue": zeros(), "in": step } } } }
}

fn zeros() -> Document {
    Status::ALL.into_iter().map(|status| (status.short().to_owned(), Bson::Int32(0))).collect()
}

/// `$$value` and one day's sums.
fn add_up(day: &str) -> Document {
    let sum = |status: Status| {
        let short = status.short();
        let of_day = doc! { "$ifNull": [format!("{day}.{short}"), 0] };
        (short.to_owned(), doc! { "$add": [format!("$$value.{short}"), of_day] }.into())
    };
    Status::ALL.into_iter().map(sum).collect()
}

fn group(prefix: &str) -> Document {
    let mut group = doc! { "_id": Bson::Null };
    for status in Status::ALL {
        group.insert(status.name(), doc! { "$sum": format!("{prefix}{}", status.short()) });
    }
    doc! { "$group": group }
}
