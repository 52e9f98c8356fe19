//! Buckets in JavaScript.

use crate::languages::javascript::{Flavor, capital};
use crate::languages::literals::filled;
use crate::rule::ShapeCode;
use crate::shapes::bucket::print::{Bucketed, indexes, reading_words, slot_words};
use crate::shapes::bucket::{Body, Bucket, Grain, Inexact, Layout, Period, ReadingId, Readings, Slot, Slots};

/// Functions that all buckets use.
fn helpers(flavor: &Flavor) -> String {
    format!("const hex = (text) => {};\n{HELPERS}", flavor.hex)
}

const HELPERS: &str = "\
const pick = (doc, names) => Object.fromEntries(names.filter((name) => name in doc).map((name) => [name, doc[name]]));
const omit = (doc, names) => Object.fromEntries(Object.entries(doc).filter(([name]) => !names.includes(name)));
const hexed = (doc, names) => ({ ...doc, ...Object.fromEntries(Object.entries(pick(doc, names)).map(([name, text]) => [name, hex(text)])) });
";

/// The names of its functions.
fn functions(bucketed: &Bucketed<'_>) -> [String; 4] {
    let name = capital(&bucketed.logical);
    let range = if bucketed.bucket.is_numbered() { "range" } else { "report" };
    ["create", "insert", range, "move"].map(|verb| format!("{verb}{name}"))
}

pub(super) fn code(bucketed: &Bucketed<'_>, flavor: &Flavor) -> ShapeCode {
    let bucket = bucketed.bucket;
    let mut words = bucketed.words(&flavor.style);
    let [create, insert, range, moving] = functions(bucketed);
    let name = capital(&bucketed.logical);
    words.extend([
        ("name", name.clone()),
        ("create", create),
        ("insert", insert),
        ("range", range),
        ("move", moving),
        ("rename", flavor.rename.to_owned()),
        ("wait", flavor.wait.to_owned()),
        ("function", flavor.function.to_owned()),
        ("floor", floor(bucket.every.name())),
        ("digits", digits(bucket.every)),
    ]);
    let index = indexes(bucketed, &flavor.style, INDEX);
    let own = if bucket.packed { PACKED } else { "" };
    let matching = if bucket.packed { MATCH_PACKED } else { MATCH };
    let (insert, group) = match &bucket.body {
        Body::Readings(readings) => {
            words.extend(reading_words(readings, bucket, &flavor.style));
            (insert_reading(readings), "")
        }
        Body::Slots(slots) => {
            words.extend(slot_words(slots, bucket, &flavor.style));
            words.push(("slot", filled(&slot(slots, bucket), &words)));
            (insert_slot(slots, bucket), "    { $group: ‹group› },\n")
        }
    };
    let template = format!("{START}{own}{CREATE}{index}{VIEW}{insert}{RANGE}{matching}{UNPACK}{group}{END}{MOVE}");
    ShapeCode { helpers: helpers(flavor), functions: functions(bucketed).to_vec(), text: filled(&template, &words) }
}

const START: &str = "\
const view‹name› = ‹view›;
const start‹name› = (date) => ‹floor›;
";
const PACKED: &str = "\
const id‹name› = (series, date) => hex(series[‹first›] + ‹digits›);
";
const CREATE: &str = "
‹function› ‹create›() {
  ‹wait›database.createCollection(‹stored›, { validator: ‹validator› });
";
const INDEX: &str = "  ‹wait›collection(‹stored›).createIndex(‹index›);\n";
const VIEW: &str = "  ‹wait›database.createCollection(‹logical›, { viewOn: ‹stored›, pipeline: view‹name› });
}
";
const RANGE: &str = "
‹function› ‹range›(series, from, to) {
  const stages = [
";
const MATCH: &str = "    { $match: { ...‹asked_series›, ‹period›: { $gte: start‹name›(from), $lt: to } } },\n";
const MATCH_PACKED: &str = "    { $match: { _id: { $gte: id‹name›(series, from), $lte: id‹name›(series, to) } } },\n";
const UNPACK: &str = "    ...view‹name›,
    { $match: { ‹time›: { $gte: from, $lt: to } } },
";
const END: &str = "  ];
  return ‹wait›collection(‹stored›).aggregate(stages).toArray();
}
";

const MOVE: &str = "
// Instead of ‹create›, where documents are there already; nobody may write them meanwhile. If one does not fit, nothing is
// stored, and all are still in ‹aside›.
const gather‹name› = ‹gather›;
‹function› ‹move›() {
  ‹wait›collection(‹logical›).‹rename›(‹aside›);
  ‹wait›‹create›();
  ‹wait›collection(‹aside›).aggregate(gather‹name›, { allowDiskUse: true }).toArray();
  ‹wait›collection(‹aside›).drop();
}
";

/// The shell waits for a call whose result is named, not for one that is returned: an error of it would leave the `try`.
fn insert_reading(readings: &Readings) -> String {
    let offset = match (readings.unit.size, readings.inexact) {
        (Grain::Millisecond, _) => "  const offset = reading[‹time›] - start;\n",
        (_, Inexact::Truncate) => "  const offset = Math.floor((reading[‹time›] - start) / ‹millis›);\n",
        (_, Inexact::Reject) => {
            "  const offset = (reading[‹time›] - start) / ‹millis›;\n\
             \x20 if (!Number.isInteger(offset)) throw new Error(`not a whole unit: ${reading[‹time›]}`);\n"
        }
    };
    let (id, free, taken) = match readings.reading_id {
        ReadingId::Time => (
            "",
            ", ‹offsets›: { $ne: offset }",
            "      if (‹wait›collection(‹stored›).findOne({ ...bucket, ‹offsets›: offset })) throw error;\n",
        ),
        ReadingId::Stored | ReadingId::Indexed => (" _id: reading._id ?? new ObjectId(),", "", ""),
    };
    let (stats, update) = match readings.stats.is_empty() {
        true => ("", "  const update = { $inc: { count: 1 }, $push: { readings: element } };\n"),
        false => (
            "const stats‹name› = ‹stats›;\n",
            "  const update = [\n\
             \x20   {\n\
             \x20     $set: {\n\
             \x20       count: { $add: [{ $ifNull: [\"$count\", 0] }, 1] },\n\
             \x20       readings: { $concatArrays: [{ $ifNull: [\"$readings\", []] }, [{ $literal: element }]] },\n\
             \x20     },\n\
             \x20   },\n\
             \x20   { $set: { stats: stats‹name› } },\n\
             \x20 ];\n",
        ),
    };
    format!(
        "\n{stats}‹function› ‹insert›(reading) {{\n\
         \x20 const start = start‹name›(reading[‹time›]);\n\
         {offset}\
         \x20 const element = {{ ‹unit›: offset,{id} ...omit(reading, ‹left›) }};\n\
         {update}\
         \x20 const bucket = {{ ...‹stored_series›, ‹period›: start }};\n\
         \x20 for (let n = 0; ; n++) {{\n\
         \x20   const _id = {{ ...bucket, n }};\n\
         \x20   try {{\n\
         \x20     const filter = {{ _id, ...bucket, count: {{ $lt: ‹at_most› }}{free} }};\n\
         \x20     const done = ‹wait›collection(‹stored›).updateOne(filter, update, {{ upsert: true }});\n\
         \x20     return done;\n\
         \x20   }} catch (error) {{\n\
         \x20     if (error.code !== 11000) throw error;\n\
         {taken}\
         \x20     // Full, unless another writer made it at the same moment.\n\
         \x20     const there = ‹wait›collection(‹stored›).findOne({{ _id }});\n\
         \x20     if (!there || there.count < ‹at_most›) n--;\n\
         \x20   }}\n\
         \x20 }}\n\
         }}\n"
    )
}

fn insert_slot(slots: &Slots, bucket: &Bucket) -> String {
    let id = match bucket.packed {
        true => "  const _id = id‹name›(reading, reading[‹time›]);\n",
        false => {
            "  const bucket = { ...‹stored_series›, ‹period›: start‹name›(reading[‹time›]) };\n  const _id = bucket;\n"
        }
    };
    let beside = if bucket.packed { "" } else { ", ...bucket" };
    let write = match slots.layout {
        Layout::FieldNames => format!(
            "  const inc = Object.fromEntries(added.map(([short, more]) => [`items.${{slot}}.${{short}}`, more]));\n\
             \x20 return ‹wait›collection(‹stored›).updateOne({{ _id{beside} }}, {{ $inc: inc }}, {{ upsert: true }});\n"
        ),
        Layout::Array => format!(
            "  const inc = Object.fromEntries(added.map(([short, more]) => [`items.$.${{short}}`, more]));\n\
             \x20 const items = {{ ‹slot_field›: slot, ...Object.fromEntries(added) }};\n\
             \x20 for (;;) {{\n\
             \x20   const changed = ‹wait›collection(‹stored›).updateOne({{ _id, ‹slot_path›: slot }}, {{ $inc: inc }});\n\
             \x20   if (changed.matchedCount) return changed;\n\
             \x20   try {{\n\
             \x20     const filter = {{ _id{beside}, ‹slot_path›: {{ $ne: slot }} }};\n\
             \x20     const done = ‹wait›collection(‹stored›).updateOne(filter, {{ $push: {{ items }} }}, {{ upsert: true }});\n\
             \x20     return done;\n\
             \x20   }} catch (error) {{\n\
             \x20     // Another writer was faster: the slot is there now.\n\
             \x20     if (error.code !== 11000) throw error;\n\
             \x20   }}\n\
             \x20 }}\n"
        ),
    };
    format!(
        "\nconst sums‹name› = ‹sums›;\n\
         ‹function› ‹insert›(reading) {{\n\
         {id}\
         \x20 const slot = ‹slot›;\n\
         \x20 const sums = Object.entries(sums‹name›).filter(([name]) => name in reading);\n\
         \x20 const added = sums.map(([name, short]) => [short, reading[name]]);\n\
         {write}\
         }}\n"
    )
}

/// What tells a slot: its name, or the value in its element.
fn slot(slots: &Slots, bucket: &Bucket) -> String {
    match (&slots.slot, slots.layout) {
        (Slot::Field { .. }, _) => "reading[‹slot_field›]".to_owned(),
        (Slot::Time(grain), Layout::Array) => format!("((date) => {})(reading[‹time›])", floor(grain.name())),
        (Slot::Time(grain), Layout::FieldNames) => {
            let parts: Vec<String> =
                crate::shapes::bucket::slot_parts(bucket.every, *grain).map(|(part, _)| iso(part)).collect();
            format!("((iso) => {})(reading[‹time›].toISOString())", parts.join(" + "))
        }
    }
}

/// Where a part of a date stands in its ISO form.
fn iso(part: Grain) -> String {
    let (from, to) = match part {
        Grain::Month => (5, 7),
        Grain::Day => (8, 10),
        Grain::Hour => (11, 13),
        Grain::Minute => (14, 16),
        Grain::Second => (17, 19),
        Grain::Millisecond => (20, 23),
    };
    format!("iso.slice({from}, {to})")
}

/// The start of the unit that `date` lies in.
fn floor(unit: &str) -> String {
    let millis = match unit {
        "second" => 1_000,
        "minute" => 60_000,
        "hour" => 3_600_000,
        "day" => 86_400_000,
        "month" => return "new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth()))".to_owned(),
        "quarter" => {
            return "new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - (date.getUTCMonth() % 3)))"
                .to_owned();
        }
        _ => return "new Date(Date.UTC(date.getUTCFullYear(), 0))".to_owned(),
    };
    format!("new Date(Math.floor(date / {millis}) * {millis})")
}

/// The digits of a period, as a packed `_id` has them.
fn digits(every: Period) -> String {
    let length = match every {
        Period::Quarter => {
            return "`${date.getUTCFullYear()}0${Math.floor(date.getUTCMonth() / 3) + 1}`".to_owned();
        }
        Period::Year => 4,
        Period::Month => 7,
        Period::Day => 10,
        Period::Hour => 13,
        Period::Minute => 16,
    };
    format!("date.toISOString().slice(0, {length}).replace(/[^0-9]/g, \"\")")
}
