//! Python, for PyMongo.

use crate::languages::literals::{quoted, render};
use crate::languages::python::{STYLE, plain};
use crate::print::{Kept, Work, collections, concerned, helpers, indexes, keyed, lift, shapes};
use crate::rule::WhenDeleted;
use document::Value;

const PROLOGUE: &str = "# pip install pymongo; MONGODB_URI=\"mongodb://…/?replicaSet=…\" python this_file.py\n\
import os\n\
from datetime import datetime, timedelta\n\
\n\
from bson import Decimal128, Int64, ObjectId, Regex\n\
from bson.datetime_ms import DatetimeMS\n\
from pymongo import MongoClient\n\
from pymongo.errors import DuplicateKeyError\n\
\n\
EPOCH = datetime(1970, 1, 1)\n\
client = MongoClient(os.environ.get(\"MONGODB_URI\", \"mongodb://127.0.0.1:27017\"))\n";

const HELPERS: &str = "\n\ndef at(doc, path):\n\
\x20   for name in path.split(\".\"):\n\
\x20       doc = doc.get(name) if isinstance(doc, dict) else None\n\
\x20   return doc\n\
\n\
\n\
def links(key):\n\
\x20   return key is not None and not isinstance(key, list)\n\
\n\
\n\
def transaction(steps):\n\
\x20   with client.start_session() as session:\n\
\x20       return session.with_transaction(steps)\n";

pub(super) fn code(kept: &[Kept]) -> String {
    let db = kept.first().map_or("test", |rule| &*rule.db);
    let mut text = format!("{PROLOGUE}db = client[{}]\n{HELPERS}", quoted(db));
    if keyed::is_needed(kept) {
        text.push_str(keyed::PYTHON);
    }
    helpers(kept).into_iter().for_each(|helpers| text.push_str(helpers));
    text.push_str("\n\ndef create_indexes():\n");
    let created = shapes(kept).filter_map(|code| code.functions.first()).map(|create| format!("    {create}()\n"));
    let indexes: String = indexes::all(kept).iter().map(|index| index.python(&STYLE)).chain(created).collect();
    text.push_str(if indexes.is_empty() { "    pass\n" } else { &indexes });
    for rule in kept {
        text.push_str(&rule_code(kept, rule));
        text.push_str(&lift::python(rule, name));
    }
    for name in collections(kept) {
        text.push_str(&writers(kept, name));
    }
    text.push_str("\n\nif __name__ == \"__main__\":\n    create_indexes()\n");
    text
}

/// `reviewCount` as `review_count`.
pub(super) fn snake(word: &str) -> String {
    let mut name = String::new();
    for letter in word.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

fn name(verb: &str, rule: &Kept) -> String {
    let words: Vec<String> = rule.words.iter().map(|word| snake(word)).collect();
    format!("{verb}_{}", words.join("_"))
}

fn rule_code(kept: &[Kept], rule: &Kept) -> String {
    let host = format!("db[{}]", quoted(&rule.host));
    let source = format!("db[{}]", quoted(rule.source.as_deref().unwrap_or_default()));
    let field = quoted(&rule.field);
    let (keep, fill) = (name("keep", rule), name("fill", rule));
    let own = "{\"_id\": host[\"_id\"]}";
    format!("\n\n# {}\n", rule.title)
        + &match &rule.work {
            Work::Unwritten(why) => format!("# No code is written for it: {why}.\n"),
            Work::Shape(code) => code.text.clone(),
            Work::Keyed { .. } => keyed::python_rule(kept, rule, name).unwrap_or_default(),
            Work::Expression { stages } => {
                let stages = render(&Value::Array(stages.borrow()), &STYLE, 4);
                format!(
                    "def {fill}(session, host, before=None):\n\
                     \x20   {host}.update_one({own}, {stages}, session=session)\n"
                )
            }
            Work::Count { by, local } => {
                let (by, local) = (quoted(by), quoted(local));
                format!(
                    "def {keep}(session, before, after):\n\
                     \x20   for child, step in ((before, -1), (after, 1)):\n\
                     \x20       key = at(child, {by})\n\
                     \x20       if links(key):\n\
                     \x20           {host}.update_one({{{local}: key}}, {{\"$inc\": {{{field}: step}}}}, session=session)\n\
                     \n\n\
                     def {fill}(session, host, before=None):\n\
                     \x20   key = at(host, {local})\n\
                     \x20   count = {source}.count_documents({{{by}: key}}, session=session) if links(key) else 0\n\
                     \x20   {host}.update_one({own}, {{\"$set\": {{{field}: count}}}}, session=session)\n"
                )
            }
            Work::Evaluate { by, local, stages, set, empty } => {
                let (by, local) = (quoted(by), quoted(local));
                let stages_name = name("stages_of", rule).to_uppercase();
                let stages = render(&Value::Array(stages.borrow()), &STYLE, 0);
                let empty = render(&Value::Document(empty.borrow()), &STYLE, 4);
                let set: Vec<String> =
                    set.iter().map(|(path, part)| format!("{}: rows[0][{}]", quoted(path), quoted(part))).collect();
                let set = set.join(", ");
                format!(
                    "{stages_name} = {stages}\n\n\n\
                     def {keep}(session, before, after):\n\
                     \x20   for child in (before, after):\n\
                     \x20       key = at(child, {by})\n\
                     \x20       host = {host}.find_one({{{local}: key}}, session=session) if links(key) else None\n\
                     \x20       if host:\n\
                     \x20           {fill}(session, host)\n\
                     \n\n\
                     def {fill}(session, host, before=None):\n\
                     \x20   key = at(host, {local})\n\
                     \x20   stages = [{{\"$match\": {{{by}: key}}}}, *{stages_name}]\n\
                     \x20   rows = list({source}.aggregate(stages, session=session)) if links(key) else []\n\
                     \x20   values = {{{set}}} if rows else {empty}\n\
                     \x20   {host}.update_one({own}, {{\"$set\": values}}, session=session)\n"
                )
            }
            Work::Copy { by, key, stage, frozen, when_deleted } => {
                let (by, key) = (quoted(by), quoted(key));
                let stage = render(stage, &STYLE, 8);
                let absent = if *frozen { format!(", {field}: {{\"$exists\": False}}") } else { String::new() };
                let stays = match frozen {
                    true => format!("    if before is not None and at(before, {by}) == key:\n        return\n"),
                    false => String::new(),
                };
                let gone = match when_deleted {
                    WhenDeleted::Keep => String::new(),
                    WhenDeleted::Unset => format!(
                        "        else:\n            {host}.update_many({{{by}: key}}, {{\"$unset\": {{{field}: 1}}}}, session=session)\n"
                    ),
                    WhenDeleted::Cascade => {
                        format!("        else:\n            {host}.delete_many({{{by}: key}}, session=session)\n")
                    }
                    WhenDeleted::Reject => format!(
                        "        elif {host}.count_documents({{{by}: key}}, session=session):\n            raise ValueError(f\"{{key}} is referred to\")\n"
                    ),
                };
                let read = name("read", rule);
                format!(
                    "def {read}(session, key):\n\
                     \x20   stages = [\n        {{\"$match\": {{{key}: key}}}},\n        {stage},\n    ]\n\
                     \x20   return next(iter({source}.aggregate(stages, session=session)), None)\n\
                     \n\n\
                     def {fill}(session, host, before=None):\n\
                     \x20   key = at(host, {by})\n{stays}\
                     \x20   source = {read}(session, key) if links(key) else None\n\
                     \x20   change = {{\"$set\": {{{field}: source[\"copy\"]}}}} if source else {{\"$unset\": {{{field}: 1}}}}\n\
                     \x20   {host}.update_one({own}, change, session=session)\n\
                     \n\n\
                     def {keep}(session, before, after):\n\
                     \x20   for key in (at(before, {key}), at(after, {key})):\n\
                     \x20       if not links(key):\n            continue\n\
                     \x20       source = {read}(session, key)\n\
                     \x20       if source:\n\
                     \x20           change = {{\"$set\": {{{field}: source[\"copy\"]}}}}\n\
                     \x20           {host}.update_many({{{by}: key{absent}}}, change, session=session)\n{gone}"
                )
            }
        }
}

/// The three functions through which a collection is written.
fn writers(kept: &[Kept], collection: &str) -> String {
    let (hosted, sourced) = concerned(kept, collection);
    let (stored, plain) = (format!("db[{}]", quoted(collection)), plain(collection));
    let reader = keyed::python_reader(kept, collection);
    let find = |filter: &str| match &reader {
        Some(_) => format!("find_{plain}(session, {filter})"),
        None => format!("{stored}.find_one({filter}, session=session)"),
    };
    let fill = |before: &str| -> String {
        hosted.iter().map(|rule| format!("        {}(session, after{before})\n", name("fill", rule))).collect()
    };
    let again = match hosted.is_empty() || sourced.is_empty() {
        true => String::new(),
        false => format!("        after = {}\n", find("{\"_id\": after[\"_id\"]}")),
    };
    let keep = |before: &str, after: &str| -> String {
        sourced.iter().map(|rule| format!("        {}(session, {before}, {after})\n", name("keep", rule))).collect()
    };
    let writers = format!(
        "\n\ndef insert_{plain}(document):\n    def steps(session):\n\
         \x20       inserted = {stored}.insert_one(document, session=session).inserted_id\n\
         \x20       after = {after_insert}\n{filled}{again}{inserted}\n\
         \x20   return transaction(steps)\n\
         \n\ndef update_{plain}(filter, change):\n    def steps(session):\n\
         \x20       before = {before}\n        if before is None:\n            return\n\
         \x20       {stored}.update_one({{\"_id\": before[\"_id\"]}}, change, session=session)\n\
         \x20       after = {after_update}\n{refilled}{again}{updated}\n\
         \x20   return transaction(steps)\n\
         \n\ndef delete_{plain}(filter):\n    def steps(session):\n\
         \x20       before = {before}\n        if before is None:\n            return\n\
         \x20       {stored}.delete_one({{\"_id\": before[\"_id\"]}}, session=session)\n{deleted}\n\
         \x20   return transaction(steps)\n",
        after_insert = find("{\"_id\": inserted}"),
        before = find("filter"),
        after_update = find("{\"_id\": before[\"_id\"]}"),
        filled = fill(""),
        refilled = fill(", before"),
        inserted = keep("None", "after"),
        updated = keep("before", "after"),
        deleted = keep("before", "None"),
    );
    reader.unwrap_or_default() + &writers
}
