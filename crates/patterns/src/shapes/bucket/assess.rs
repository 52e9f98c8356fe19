//! What a move into buckets does to logical documents, counted by stages that run where the documents are: which have no place,
//! whose `_id` is another afterwards, whose time is cut.

use crate::mql::{call, call_with, cond, field, object};
use crate::shapes::bucket::gather_check::why_not;
use crate::shapes::bucket::view::part_name;
use crate::shapes::bucket::{Body, Bucket, Inexact, Slot};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Result, Value};

impl Bucket {
    /// Gives `{ _id: <why they have no place, or null>, documents, example, kept, cut, groups, grouped, grouped_kept, latest }`,
    /// one per reason.
    ///
    /// `kept` counts the documents whose `_id` stays, `cut` those whose time is cut. `groups` counts the logical documents that
    /// several documents would become, and `grouped` these; of them `grouped_kept` have the `_id` that stays, and `latest` is the
    /// `_id` of one that is not the first of its group.
    pub(crate) fn assess(&self) -> Result<Pipeline> {
        let fits = || call_with("$eq", [field("why"), Value::Null]);
        let to = match self.makes_ids() {
            true => cond(fits(), self.made_id(), Value::Null),
            false => Value::Null,
        };
        let cut = match self.cut_time() {
            Some(cut) => cond(fits(), call_with("$ne", [field(&in_root(&self.time)), cut]), Value::Bool(false)),
            None => Value::Bool(false),
        };
        let count = |condition: Value<'static>| call("$sum", cond(condition, Value::Int32(1), Value::Int32(0)));
        let several = || call_with("$gt", [field("documents"), Value::Int32(1)]);
        let if_several = |value: &str| cond(several(), field(value), Value::Int32(0));
        let same = [
            ("_id", object([("why", field("why")), ("to", field("to"))])),
            ("documents", call("$sum", Value::Int32(1))),
            ("example", call("$min", field("document._id"))),
            ("latest", call("$max", field("document._id"))),
            ("kept", count(call_with("$eq", [field("document._id"), field("to")]))),
            ("cut", count(field("cut"))),
        ];
        let mut stages = vec![
            call("$replaceWith", object([("why", why_not(self)), ("document", Value::from("$$ROOT"))])),
            call("$set", object([("to", to), ("cut", cut)])),
            call("$group", object(same)),
            call(
                "$set",
                object([
                    ("groups", cond(several(), Value::Int32(1), Value::Int32(0))),
                    ("grouped", if_several("documents")),
                    ("grouped_kept", if_several("kept")),
                    ("latest", cond(several(), field("latest"), Value::Null)),
                ]),
            ),
        ];
        stages.extend(self.without_room().into_iter().flatten());
        stages.push(call("$group", object([("_id", field("_id.why"))].into_iter().chain(summed()))));
        stages.push(call("$sort", object([("_id", Value::Int32(1))])));
        Pipeline::parse(&stages.into_iter().collect::<Array<'static>>(), &mut Names::new())
    }

    /// Says of documents whose bucket would have more slots than it may that they have no place in it. Returns `None` if the slots
    /// of a bucket are bounded by time.
    fn without_room(&self) -> Option<[Value<'static>; 2]> {
        let Body::Slots(slots) = &self.body else { return None };
        let Slot::Field { field: name, at_most, .. } = &slots.slot else { return None };
        let of_bucket = self.by.iter().map(|series| &*series.field).chain([&*self.time]);
        let of_bucket: Vec<_> = of_bucket.map(|name| (name, field(&format!("_id.to.{name}")))).collect();
        let id = object([("why", field("_id.why")), ("bucket", object(of_bucket))]);
        let group = [("_id", id), ("slots", call("$sum", Value::Int32(1)))].into_iter().chain(summed());
        let fits = call_with("$eq", [field("_id.why"), Value::Null]);
        let is_full = call_with("$gt", [field("slots"), Value::Int64(i64::from(*at_most))]);
        let why = format!("its bucket would have more than {at_most} slots of '{name}'");
        let why = cond(call_with("$and", [fits, is_full]), Value::string(why), field("_id.why"));
        Some([call("$group", object(group)), call("$set", object([("_id", object([("why", why)]))]))])
    }

    /// Whether `_id` is made from series, time and slot.
    pub(crate) fn makes_ids(&self) -> bool {
        match &self.body {
            Body::Readings(readings) => !readings.keeps_id(),
            Body::Slots(_) => true,
        }
    }

    /// What times are cut to. `None` if they stay as they are.
    pub(crate) fn cuts_to(&self) -> Option<&'static str> {
        match &self.body {
            Body::Readings(readings) if readings.inexact == Inexact::Reject => None,
            Body::Readings(readings) => Some(part_name(readings.unit.size)),
            Body::Slots(slots) => Some(match &slots.slot {
                Slot::Time(grain) => part_name(*grain),
                Slot::Field { .. } => self.every.name(),
            }),
        }
    }

    fn cut_time(&self) -> Option<Value<'static>> {
        let unit = Value::from(self.cuts_to()?);
        Some(call("$dateTrunc", object([("date", field(&in_root(&self.time))), ("unit", unit)])))
    }

    /// [`Bucket::derived_id`] as an expression. Hex digits are given back in lower case.
    fn made_id(&self) -> Value<'static> {
        let series = self.by.iter().map(|series| {
            let value = field(&in_root(&series.field));
            let is_text = call_with("$eq", [call("$type", value.borrow()), Value::from("string")]);
            let shown = match series.hex {
                true => cond(is_text, call("$toLower", value.borrow()), value),
                false => value,
            };
            (series.field.to_string(), shown)
        });
        let time = self.cut_time().unwrap_or_else(|| field(&in_root(&self.time)));
        let slot = match &self.body {
            Body::Slots(slots) => slots.slot.field(),
            Body::Readings(_) => None,
        };
        let fields = series.chain([(self.time.to_string(), time)]);
        let fields: Vec<_> = fields.chain(slot.map(|name| (name.to_owned(), field(&in_root(name))))).collect();
        object(fields.iter().map(|(name, value)| (&**name, value.borrow())))
    }
}

/// What is known of several groups together.
fn summed() -> impl Iterator<Item = (&'static str, Value<'static>)> {
    let sums = ["documents", "kept", "cut", "groups", "grouped", "grouped_kept"];
    let ends = [("example", "$min"), ("latest", "$max")];
    let sums = sums.into_iter().map(|name| (name, call("$sum", field(name))));
    sums.chain(ends.into_iter().map(|(name, end)| (name, call(end, field(name)))))
}

/// A field of the document beside what is found out about it.
fn in_root(name: &str) -> String {
    format!("document.{name}")
}
