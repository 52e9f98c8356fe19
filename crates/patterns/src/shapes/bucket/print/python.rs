//! Buckets in Python.

use crate::languages::literals::filled;
use crate::languages::literals::quoted;
use crate::languages::python::{STYLE, plain};
use crate::rule::ShapeCode;
use crate::shapes::bucket::print::{Bucketed, indexes, reading_words, slot_words};
use crate::shapes::bucket::{Body, Bucket, Grain, Inexact, Layout, Period, ReadingId, Readings, Slot, Slots};

/// Functions that all buckets use.
const HELPERS: &str = "

def pick(doc, names):
    return {name: doc[name] for name in names if name in doc}


def omit(doc, names):
    return {name: value for name, value in doc.items() if name not in names}


def hexed(doc, names):
    return {name: bytes.fromhex(value) if name in names else value for name, value in doc.items()}
";

pub(super) fn code(bucketed: &Bucketed<'_>) -> ShapeCode {
    let bucket = bucketed.bucket;
    let name = plain(&bucketed.logical);
    let mut words = bucketed.words(&STYLE);
    words.extend([
        ("name", name.clone()),
        ("NAME", name.to_uppercase()),
        ("floor", floor(bucket.every.name())),
        ("digits", digits(bucket.every).to_owned()),
    ]);
    let index = indexes(bucketed, &STYLE, "    db[‹stored›].create_index(‹index›)\n");
    let own = if bucket.packed { PACKED } else { "" };
    let matching = if bucket.packed { MATCH_PACKED } else { MATCH };
    let (insert, verb, group) = match &bucket.body {
        Body::Readings(readings) => {
            words.extend(reading_words(readings, bucket, &STYLE));
            (insert_reading(readings), "range", "")
        }
        Body::Slots(slots) => {
            words.extend(slot_words(slots, bucket, &STYLE));
            words.push(("slot", slot(slots, bucket)));
            (insert_slot(slots, bucket), "report", "        {\"$group\": ‹group›},\n")
        }
    };
    words.push(("range", verb.to_owned()));
    let template = format!("{START}{own}{CREATE}{index}{VIEW}{insert}{RANGE}{matching}{UNPACK}{group}{END}{MOVE}");
    ShapeCode {
        helpers: HELPERS.to_owned(),
        functions: vec![format!("create_{name}")],
        text: filled(&template, &words),
    }
}

const START: &str = "\
VIEW_‹NAME› = ‹view›


def start_‹name›(date):
    return date.replace(‹floor›)
";
const PACKED: &str = "

def id_‹name›(series, date):
    return bytes.fromhex(series[‹first›] + f\"‹digits›\")
";
const CREATE: &str = "

def create_‹name›():
    db.create_collection(‹stored›, validator=‹validator›)
";
const VIEW: &str = "    db.create_collection(‹logical›, viewOn=‹stored›, pipeline=VIEW_‹NAME›)
";
const RANGE: &str = "

def ‹range›_‹name›(series, start, end):
    stages = [
";
const MATCH: &str =
    "        {\"$match\": {**‹asked_series›, ‹period›: {\"$gte\": start_‹name›(start), \"$lt\": end}}},\n";
const MATCH_PACKED: &str =
    "        {\"$match\": {\"_id\": {\"$gte\": id_‹name›(series, start), \"$lte\": id_‹name›(series, end)}}},\n";
const UNPACK: &str = "        *VIEW_‹NAME›,
        {\"$match\": {‹time›: {\"$gte\": start, \"$lt\": end}}},
";
const END: &str = "    ]
    return list(db[‹stored›].aggregate(stages))
";
const MOVE: &str = "

GATHER_‹NAME› = ‹gather›


# Instead of create_‹name›, where documents are there already; nobody may write them meanwhile. If one does not fit, nothing is
# stored, and all are still in ‹aside›.
def move_‹name›():
    db[‹logical›].rename(‹aside›)
    create_‹name›()
    db[‹aside›].aggregate(GATHER_‹NAME›, allowDiskUse=True)
    db[‹aside›].drop()
";

fn insert_reading(readings: &Readings) -> String {
    let offset = match (readings.unit.size, readings.inexact) {
        (Grain::Millisecond, _) | (_, Inexact::Truncate) => "",
        (_, Inexact::Reject) => {
            "    if rest:\n        raise ValueError(\"not a whole unit: \" + str(reading[‹time›]))\n"
        }
    };
    let (id, free, taken) = match readings.reading_id {
        ReadingId::Time => (
            "",
            ", ‹offsets›: {\"$ne\": offset}",
            "            if db[‹stored›].find_one({**bucket, ‹offsets›: offset}):\n                raise\n",
        ),
        ReadingId::Stored | ReadingId::Indexed => (" \"_id\": reading.get(\"_id\", ObjectId()),", "", ""),
    };
    let (stats, update) = match readings.stats.is_empty() {
        true => ("", "    update = {\"$inc\": {\"count\": 1}, \"$push\": {\"readings\": element}}\n"),
        false => (
            "\n\nSTATS_‹NAME› = ‹stats›\n",
            "    old = {\"$ifNull\": [\"$readings\", []]}\n\
             \x20   readings = {\"$concatArrays\": [old, [{\"$literal\": element}]]}\n\
             \x20   count = {\"$add\": [{\"$ifNull\": [\"$count\", 0]}, 1]}\n\
             \x20   update = [{\"$set\": {\"count\": count, \"readings\": readings}}, {\"$set\": {\"stats\": STATS_‹NAME›}}]\n",
        ),
    };
    format!(
        "{stats}\n\ndef insert_‹name›(reading):\n\
         \x20   start = start_‹name›(reading[‹time›])\n\
         \x20   offset, rest = divmod(reading[‹time›] - start, timedelta(milliseconds=‹millis›))\n\
         {offset}\
         \x20   element = {{‹unit›: offset,{id} **omit(reading, ‹left›)}}\n\
         {update}\
         \x20   bucket = {{**‹stored_series›, ‹period›: start}}\n\
         \x20   n = 0\n\
         \x20   while True:\n\
         \x20       _id = {{**bucket, \"n\": n}}\n\
         \x20       try:\n\
         \x20           filter = {{\"_id\": _id, **bucket, \"count\": {{\"$lt\": ‹at_most›}}{free}}}\n\
         \x20           return db[‹stored›].update_one(filter, update, upsert=True)\n\
         \x20       except DuplicateKeyError:\n\
         {taken}\
         \x20           # Full, unless another writer made it at the same moment.\n\
         \x20           there = db[‹stored›].find_one({{\"_id\": _id}})\n\
         \x20           n += there is not None and there[\"count\"] >= ‹at_most›\n"
    )
}

fn insert_slot(slots: &Slots, bucket: &Bucket) -> String {
    let id = match bucket.packed {
        true => "    own = {\"_id\": id_‹name›(reading, reading[‹time›])}\n    beside = {}\n",
        false => {
            "    beside = {**‹stored_series›, ‹period›: start_‹name›(reading[‹time›])}\n    own = {\"_id\": beside}\n"
        }
    };
    let write = match slots.layout {
        Layout::FieldNames => {
            "    inc = {f\"items.{slot}.{short}\": more for short, more in added.items()}\n\
             \x20   return db[‹stored›].update_one({**own, **beside}, {\"$inc\": inc}, upsert=True)\n"
        }
        Layout::Array => {
            "    inc = {f\"items.$.{short}\": more for short, more in added.items()}\n\
             \x20   while True:\n\
             \x20       changed = db[‹stored›].update_one({**own, ‹slot_path›: slot}, {\"$inc\": inc})\n\
             \x20       if changed.matched_count:\n\
             \x20           return changed\n\
             \x20       try:\n\
             \x20           filter = {**own, **beside, ‹slot_path›: {\"$ne\": slot}}\n\
             \x20           item = {‹slot_field›: slot, **added}\n\
             \x20           return db[‹stored›].update_one(filter, {\"$push\": {\"items\": item}}, upsert=True)\n\
             \x20       except DuplicateKeyError:\n\
             \x20           pass  # another writer was faster: the slot is there now\n"
        }
    };
    format!(
        "\n\nSUMS_‹NAME› = ‹sums›\n\n\n\
         def insert_‹name›(reading):\n\
         {id}\
         \x20   slot = ‹slot›\n\
         \x20   added = {{short: reading[name] for name, short in SUMS_‹NAME›.items() if name in reading}}\n\
         {write}"
    )
}

/// What tells a slot: its name, or the value in its element.
fn slot(slots: &Slots, bucket: &Bucket) -> String {
    let time = quoted(&bucket.time);
    match (&slots.slot, slots.layout) {
        (Slot::Field { field, .. }, _) => format!("reading[{}]", quoted(field)),
        (Slot::Time(grain), Layout::Array) => format!("reading[{time}].replace({})", floor(grain.name())),
        (Slot::Time(grain), Layout::FieldNames) => {
            let parts: String =
                crate::shapes::bucket::slot_parts(bucket.every, *grain).map(|(part, _)| code_of(part)).collect();
            format!("reading[{time}].strftime(\"{parts}\")")
        }
    }
}

fn code_of(part: Grain) -> &'static str {
    match part {
        Grain::Month => "%m",
        Grain::Day => "%d",
        Grain::Hour => "%H",
        Grain::Minute => "%M",
        Grain::Second | Grain::Millisecond => "%S",
    }
}

/// The arguments of `replace` that cut a date to its unit.
fn floor(unit: &str) -> String {
    let units = ["microsecond=0", "second=0", "minute=0", "hour=0", "day=1", "month=1"];
    let cut = match unit {
        "second" => 1,
        "minute" => 2,
        "hour" => 3,
        "day" => 4,
        "month" | "quarter" => 5,
        _ => 6,
    };
    let mut arguments: Vec<&str> = units.iter().take(cut).copied().rev().collect();
    if unit == "quarter" {
        arguments.insert(0, "month=date.month - (date.month - 1) % 3");
    }
    arguments.join(", ")
}

/// The digits of a period, as a packed `_id` has them.
fn digits(every: Period) -> &'static str {
    match every {
        Period::Year => "{date:%Y}",
        Period::Quarter => "{date:%Y}{(date.month + 2) // 3:02}",
        Period::Month => "{date:%Y%m}",
        Period::Day => "{date:%Y%m%d}",
        Period::Hour => "{date:%Y%m%d%H}",
        Period::Minute => "{date:%Y%m%d%H%M}",
    }
}
