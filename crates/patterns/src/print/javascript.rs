//! JavaScript, for the shell (which waits by itself) and for the Node.js driver.

use crate::print::values::{Style, quoted, render};
use crate::print::{Kept, Work, bucket, buckets, collections, concerned, indexes};
use crate::rule::WhenDeleted;
use document::Value;

/// What differs between the two.
pub(super) struct Flavor {
    pub(super) style: Style,
    prologue: fn(&str) -> String,
    epilogue: &'static str,
    /// Before each call that the server answers.
    pub(super) wait: &'static str,
    pub(super) function: &'static str,
    /// The last argument of a call in a transaction; the shell's session has collections of its own.
    option: &'static str,
    /// The bytes of the hex digits `text`.
    pub(super) hex: &'static str,
    /// What renames a collection.
    pub(super) rename: &'static str,
}

pub(super) const MONGOSH: Flavor = Flavor {
    style: Style {
        whole_double: |number| format!("Double({number:?})"),
        long: |number| format!("NumberLong(\"{number}\")"),
        decimal: |text| format!("NumberDecimal(\"{text}\")"),
        object_id: |hex| format!("ObjectId(\"{hex}\")"),
        ..JAVASCRIPT
    },
    prologue: |db| {
        format!(
            "// mongosh \"mongodb://…/?replicaSet=…\" this-file.js\n\
             const session = db.getMongo().startSession();\n\
             const database = session.getDatabase({});\n\
             const collection = (name) => database.getCollection(name);\n\
             const transaction = (steps) => session.withTransaction(steps);\n",
            quoted(db)
        )
    },
    epilogue: "",
    wait: "",
    function: "function",
    option: "",
    hex: "HexData(0, text)",
    rename: "renameCollection",
};

pub(super) const NODE: Flavor = Flavor {
    style: Style {
        whole_double: |number| format!("new Double({number:?})"),
        long: |number| format!("Long.fromString(\"{number}\")"),
        decimal: |text| format!("Decimal128.fromString(\"{text}\")"),
        object_id: |hex| format!("new ObjectId(\"{hex}\")"),
        ..JAVASCRIPT
    },
    prologue: |db| {
        format!(
            "// npm install mongodb; MONGODB_URI=\"mongodb://…/?replicaSet=…\" node this-file.js\n\
             const {{ Binary, Decimal128, Double, Long, MongoClient, ObjectId }} = require(\"mongodb\");\n\
             const client = new MongoClient(process.env.MONGODB_URI || \"mongodb://127.0.0.1:27017\");\n\
             const session = client.startSession();\n\
             const database = client.db({});\n\
             const collection = (name) => database.collection(name);\n\
             const transaction = (steps) => session.withTransaction(steps);\n",
            quoted(db)
        )
    },
    epilogue: "if (require.main === module) createIndexes().finally(() => client.close());\n",
    wait: "await ",
    function: "async function",
    option: ", { session }",
    hex: "new Binary(Buffer.from(text, \"hex\"))",
    rename: "rename",
};

const JAVASCRIPT: Style = Style {
    null: "null",
    yes: "true",
    no: "false",
    nan: "NaN",
    infinity: "Infinity",
    whole_double: |number| format!("{number:?}"),
    long: |number| number.to_string(),
    decimal: |text| text.to_owned(),
    object_id: |hex| hex.to_owned(),
    date: |millis| format!("new Date({millis})"),
    regex: |pattern, options| format!("new RegExp({}, {})", quoted(pattern), quoted(options)),
    name: |name| match name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$')
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
    {
        true => name.to_owned(),
        false => quoted(name),
    },
    spaced: true,
};

const HELPERS: &str = "const at = (doc, path) => path.split(\".\").reduce((value, name) => value?.[name], doc ?? {});\n\
const links = (key) => key !== null && key !== undefined && !Array.isArray(key);\n";

pub(super) fn code(kept: &[Kept], flavor: &Flavor) -> String {
    let db = kept.first().map_or("test", |rule| &*rule.db);
    let mut text = format!("{}{HELPERS}", (flavor.prologue)(db));
    if buckets(kept).next().is_some() {
        text.push_str(&bucket::javascript::helpers(flavor));
    }
    text.push('\n');
    let Flavor { wait, function, .. } = flavor;
    text.push_str(&format!("{function} createIndexes() {{\n"));
    for (collection, path) in indexes(kept) {
        let (collection, path) = (quoted(collection), quoted(path));
        text.push_str(&format!("  {wait}collection({collection}).createIndex({{ {path}: 1 }});\n"));
    }
    for bucketed in buckets(kept) {
        let [create, ..] = bucket::javascript::functions(bucketed);
        text.push_str(&format!("  {wait}{create}();\n"));
    }
    text.push_str("}\n");
    for rule in kept {
        text.push_str(&rule_code(rule, flavor));
    }
    for name in collections(kept) {
        text.push_str(&writers(kept, name, flavor));
    }
    if flavor.epilogue.is_empty() {
        text.push_str("\ncreateIndexes();\n");
    } else {
        text.push_str(&format!("\n{}", flavor.epilogue));
        let exported: Vec<String> = collections(kept)
            .into_iter()
            .flat_map(|name| ["insert", "update", "delete"].map(|verb| format!("{verb}{}", capital(name))))
            .chain(buckets(kept).flat_map(bucket::javascript::functions))
            .collect();
        text.push_str(&format!("module.exports = {{ createIndexes, {} }};\n", exported.join(", ")));
    }
    text
}

pub(super) fn capital(word: &str) -> String {
    let plain: String = word.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    let mut letters = plain.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}", first.to_ascii_uppercase(), letters.as_str()))
}

fn name(verb: &str, rule: &Kept) -> String {
    format!("{verb}{}", rule.words.iter().map(|word| capital(word)).collect::<String>())
}

fn rule_code(rule: &Kept, flavor: &Flavor) -> String {
    let Flavor { wait, function, option, style, .. } = flavor;
    let host = format!("collection({})", quoted(&rule.host));
    let source = format!("collection({})", quoted(rule.source.as_deref().unwrap_or_default()));
    let field = quoted(&rule.field);
    let title = format!("\n// {}\n", rule.title);
    let (keep, fill) = (name("keep", rule), name("fill", rule));
    title
        + &match &rule.work {
            Work::Unwritten(why) => format!("// No code is written for it: {why}.\n"),
            Work::Bucket(bucketed) => bucket::javascript::code(bucketed, flavor),
            Work::Expression { stages } => {
                let stages = render(&Value::Array(stages.borrow()), style, 2);
                format!(
                    "{function} {fill}(session, host, before) {{\n  {wait}{host}.updateOne({{ _id: host._id }}, {stages}{option});\n}}\n"
                )
            }
            Work::Count { by, local } => {
                let (by, local) = (quoted(by), quoted(local));
                format!(
                    "{function} {keep}(session, before, after) {{\n\
                     \x20 for (const [child, step] of [[before, -1], [after, 1]]) {{\n\
                     \x20   const key = at(child, {by});\n\
                     \x20   if (links(key)) {wait}{host}.updateOne({{ {local}: key }}, {{ $inc: {{ {field}: step }} }}{option});\n\
                     \x20 }}\n}}\n\
                     {function} {fill}(session, host, before) {{\n\
                     \x20 const key = at(host, {local});\n\
                     \x20 const count = links(key) ? {wait}{source}.countDocuments({{ {by}: key }}{option}) : 0;\n\
                     \x20 {wait}{host}.updateOne({{ _id: host._id }}, {{ $set: {{ {field}: count }} }}{option});\n}}\n"
                )
            }
            Work::Evaluate { by, local, stages, set, empty } => {
                let (by, local) = (quoted(by), quoted(local));
                let stages = render(&Value::Array(stages.borrow()), style, 2);
                let empty = render(&Value::Document(empty.borrow()), style, 2);
                let set: Vec<String> = set.iter().map(|(path, part)| format!("{}: row.{part}", quoted(path))).collect();
                let (set, stages_name) = (set.join(", "), name("stagesOf", rule));
                format!(
                    "const {stages_name} = {stages};\n\
                     {function} {keep}(session, before, after) {{\n\
                     \x20 for (const child of [before, after]) {{\n\
                     \x20   const key = at(child, {by});\n\
                     \x20   const host = links(key) && ({wait}{host}.findOne({{ {local}: key }}{option}));\n\
                     \x20   if (host) {wait}{fill}(session, host);\n\
                     \x20 }}\n}}\n\
                     {function} {fill}(session, host, before) {{\n\
                     \x20 const key = at(host, {local});\n\
                     \x20 const stages = [{{ $match: {{ {by}: key }} }}, ...{stages_name}];\n\
                     \x20 const [row] = links(key) ? {wait}{source}.aggregate(stages{option}).toArray() : [];\n\
                     \x20 const set = row ? {{ {set} }} : {empty};\n\
                     \x20 {wait}{host}.updateOne({{ _id: host._id }}, {{ $set: set }}{option});\n}}\n"
                )
            }
            Work::Copy { by, key, stage, frozen, when_deleted } => {
                let (by, key) = (quoted(by), quoted(key));
                let stage = render(stage, style, 4);
                let absent = if *frozen { format!(", {field}: {{ $exists: false }}") } else { String::new() };
                let stays = match frozen {
                    true => format!("  if (before && String(at(before, {by})) === String(key)) return;\n"),
                    false => String::new(),
                };
                let gone = match when_deleted {
                    WhenDeleted::Keep => String::new(),
                    WhenDeleted::Unset => format!(
                        "    if (!source) {wait}{host}.updateMany({{ {by}: key }}, {{ $unset: {{ {field}: 1 }} }}{option});\n"
                    ),
                    WhenDeleted::Cascade => {
                        format!("    if (!source) {wait}{host}.deleteMany({{ {by}: key }}{option});\n")
                    }
                    WhenDeleted::Reject => format!(
                        "    if (!source && ({wait}{host}.countDocuments({{ {by}: key }}{option})) > 0) throw new Error(`${{key}} is referred to`);\n"
                    ),
                };
                let read = name("read", rule);
                format!(
                    "{function} {read}(session, key) {{\n\
                     \x20 const stages = [\n    {{ $match: {{ {key}: key }} }},\n    {stage},\n  ];\n\
                     \x20 return ({wait}{source}.aggregate(stages{option}).toArray())[0];\n}}\n\
                     {function} {fill}(session, host, before) {{\n\
                     \x20 const key = at(host, {by});\n{stays}\
                     \x20 const source = links(key) && ({wait}{read}(session, key));\n\
                     \x20 const change = source ? {{ $set: {{ {field}: source.copy }} }} : {{ $unset: {{ {field}: 1 }} }};\n\
                     \x20 {wait}{host}.updateOne({{ _id: host._id }}, change{option});\n}}\n\
                     {function} {keep}(session, before, after) {{\n\
                     \x20 for (const key of [at(before, {key}), at(after, {key})].filter(links)) {{\n\
                     \x20   const source = {wait}{read}(session, key);\n\
                     \x20   if (source) {wait}{host}.updateMany({{ {by}: key{absent} }}, {{ $set: {{ {field}: source.copy }} }}{option});\n\
                     {gone}\x20 }}\n}}\n"
                )
            }
        }
}

/// The three functions through which a collection is written.
fn writers(kept: &[Kept], collection: &str, flavor: &Flavor) -> String {
    let Flavor { wait, function, option, .. } = flavor;
    let (hosted, sourced) = concerned(kept, collection);
    let (stored, capital) = (format!("collection({})", quoted(collection)), capital(collection));
    let arrow = if wait.is_empty() { "() =>" } else { "async () =>" };
    let fill = |before: &str| -> String {
        hosted.iter().map(|rule| format!("    {wait}{}(session, after{before});\n", name("fill", rule))).collect()
    };
    // What was just filled may be read by others.
    let again = match hosted.is_empty() || sourced.is_empty() {
        true => String::new(),
        false => format!("    after = {wait}{stored}.findOne({{ _id: after._id }}{option});\n"),
    };
    let keep = |before: &str, after: &str| -> String {
        let call = |rule: &&Kept| format!("    {wait}{}(session, {before}, {after});\n", name("keep", rule));
        sourced.iter().map(call).collect()
    };
    format!(
        "\n{function} insert{capital}(document) {{\n  return transaction({arrow} {{\n\
         \x20   const {{ insertedId }} = {wait}{stored}.insertOne(document{option});\n\
         \x20   let after = {wait}{stored}.findOne({{ _id: insertedId }}{option});\n{filled}{again}{inserted}  }});\n}}\n\
         {function} update{capital}(filter, change) {{\n  return transaction({arrow} {{\n\
         \x20   const before = {wait}{stored}.findOne(filter{option});\n    if (!before) return;\n\
         \x20   {wait}{stored}.updateOne({{ _id: before._id }}, change{option});\n\
         \x20   let after = {wait}{stored}.findOne({{ _id: before._id }}{option});\n{refilled}{again}{updated}  }});\n}}\n\
         {function} delete{capital}(filter) {{\n  return transaction({arrow} {{\n\
         \x20   const before = {wait}{stored}.findOne(filter{option});\n    if (!before) return;\n\
         \x20   {wait}{stored}.deleteOne({{ _id: before._id }}{option});\n{deleted}  }});\n}}\n",
        filled = fill(""),
        refilled = fill(", before"),
        inserted = keep("null", "after"),
        updated = keep("before", "after"),
        deleted = keep("before", "null"),
    )
}
