//! JavaScript, for the shell (which waits by itself) and for the Node.js driver.

use crate::languages::javascript::{Flavor, capital};
use crate::languages::literals::{quoted, render};
use crate::print::{Kept, Work, collections, concerned, helpers, indexes, keyed, lift, shapes};
use crate::rule::WhenDeleted;
use document::Value;

const HELPERS: &str = "const at = (doc, path) => path.split(\".\").reduce((value, name) => value?.[name], doc ?? {});\n\
const links = (key) => key !== null && key !== undefined && !Array.isArray(key);\n";

pub(super) fn code(kept: &[Kept], flavor: &Flavor) -> String {
    let db = kept.first().map_or("test", |rule| &*rule.db);
    let mut text = format!("{}{HELPERS}", (flavor.prologue)(db));
    if keyed::is_needed(kept) {
        text.push_str(&keyed::javascript(flavor));
    }
    helpers(kept).into_iter().for_each(|helpers| text.push_str(helpers));
    text.push('\n');
    let Flavor { wait, function, .. } = flavor;
    text.push_str(&format!("{function} createIndexes() {{\n"));
    for index in indexes::all(kept) {
        text.push_str(&index.javascript(wait, &flavor.style));
    }
    for create in shapes(kept).filter_map(|code| code.functions.first()) {
        text.push_str(&format!("  {wait}{create}();\n"));
    }
    text.push_str("}\n");
    for rule in kept {
        text.push_str(&rule_code(kept, rule, flavor));
        text.push_str(&lift::javascript(rule, flavor, name));
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
            .chain(shapes(kept).flat_map(|code| code.functions.iter().cloned()))
            .chain(kept.iter().filter(|rule| rule.lift.is_some()).map(|rule| name("lift", rule)))
            .collect();
        text.push_str(&format!("module.exports = {{ createIndexes, {} }};\n", exported.join(", ")));
    }
    text
}

fn name(verb: &str, rule: &Kept) -> String {
    format!("{verb}{}", rule.words.iter().map(|word| capital(word)).collect::<String>())
}

fn rule_code(kept: &[Kept], rule: &Kept, flavor: &Flavor) -> String {
    let Flavor { wait, function, option, style, .. } = flavor;
    let host = format!("collection({})", quoted(&rule.host));
    let source = format!("collection({})", quoted(rule.source.as_deref().unwrap_or_default()));
    let field = quoted(&rule.field);
    let title = format!("\n// {}\n", rule.title);
    let (keep, fill) = (name("keep", rule), name("fill", rule));
    title
        + &match &rule.work {
            Work::Unwritten(why) => format!("// No code is written for it: {why}.\n"),
            Work::Shape(code) => code.text.clone(),
            Work::Keyed { .. } => keyed::javascript_rule(kept, rule, flavor, name).unwrap_or_default(),
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
    let reader = keyed::javascript_reader(kept, collection, &capital, flavor);
    let find = |filter: &str| match &reader {
        Some(_) => format!("{wait}find{capital}(session, {filter})"),
        None => format!("{wait}{stored}.findOne({filter}{option})"),
    };
    let fill = |before: &str| -> String {
        hosted.iter().map(|rule| format!("    {wait}{}(session, after{before});\n", name("fill", rule))).collect()
    };
    // What was just filled may be read by others.
    let again = match hosted.is_empty() || sourced.is_empty() {
        true => String::new(),
        false => format!("    after = {};\n", find("{ _id: after._id }")),
    };
    let keep = |before: &str, after: &str| -> String {
        let call = |rule: &&Kept| format!("    {wait}{}(session, {before}, {after});\n", name("keep", rule));
        sourced.iter().map(call).collect()
    };
    let writers = format!(
        "\n{function} insert{capital}(document) {{\n  return transaction({arrow} {{\n\
         \x20   const {{ insertedId }} = {wait}{stored}.insertOne(document{option});\n\
         \x20   let after = {after_insert};\n{filled}{again}{inserted}  }});\n}}\n\
         {function} update{capital}(filter, change) {{\n  return transaction({arrow} {{\n\
         \x20   const before = {before};\n    if (!before) return;\n\
         \x20   {wait}{stored}.updateOne({{ _id: before._id }}, change{option});\n\
         \x20   let after = {after_update};\n{refilled}{again}{updated}  }});\n}}\n\
         {function} delete{capital}(filter) {{\n  return transaction({arrow} {{\n\
         \x20   const before = {before};\n    if (!before) return;\n\
         \x20   {wait}{stored}.deleteOne({{ _id: before._id }}{option});\n{deleted}  }});\n}}\n",
        after_insert = find("{ _id: insertedId }"),
        before = find("filter"),
        after_update = find("{ _id: before._id }"),
        filled = fill(""),
        refilled = fill(", before"),
        inserted = keep("null", "after"),
        updated = keep("before", "after"),
        deleted = keep("before", "null"),
    );
    reader.unwrap_or_default() + &writers
}
