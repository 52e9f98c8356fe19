//! Computed: a count, sum, average, smallest, largest, first or last value of child documents, or how many different values they
//! have, on their parent or rolled up by a key; or an expression over the document itself, kept up to date.
//!
//! Before: `products { _id: 7 }`, and a `$group` over `reviews` on every page.
//! After: `products { _id: 7, reviewCount: 2, avgRating: 4.5 }`.

use crate::declare::block::Block;
use crate::declare::finding::Findings;
use crate::declare::kinds::children::Children;
use crate::declare::kinds::extended_reference::{CLIENT_WRITES_KEY, client_writes};
use crate::declare::kinds::link_keys::{BY_KEY, CREATE_KEY, EACH_KEY, MATCH_KEY};
use crate::declare::kinds::sort_keys::{self, SORT_KEY};
use crate::declare::kinds::{DeclaredField, Definition, KeyDef, KeySet, Pattern, Per, Status, ValueType};
use crate::declare::{programs, spelling};
use crate::fields::first::{End, First};
use crate::fields::order::SortOrder;
use crate::fields::{DistinctField, ExpressionField, Extreme, ExtremeField, FirstField, Tally, TallyField};
use crate::rule::{Field, Lookup, Rule};
use document::{DocWriter, Value};
use std::sync::Arc;

pub(super) const PATTERN: Pattern = Pattern {
    name: "computed",
    title: "Computed",
    help: "Keeps a count, sum, average, smallest, largest, first or last value of child documents, or how many different ones they have, on their parent or by month, region, tag; or an expression over the document itself.",
    problem: "The same aggregation over child documents runs on every page load, and costs more with every child.",
    mechanism: "Each write of a child changes its parent's value by the difference, in the same transaction; sums are exact. Roll-up documents (`create: true`) come and go with their children.",
    symptom: "A $count, $sum, $avg, $min or $max over one collection for each document of another, on almost every read.",
    when_not: "Children are written far more often than the value is read, and nobody needs it to be exact at once.",
    example: "products:\n  computed:\n    reviewCount: { count: reviews, by: productId }\n    avgRating: { avg: rating, from: reviews, by: productId }\nmonths:\n  computed:\n    revenue:\n      sum: amount\n      from: sales\n      by: { $dateTrunc: { date: $date, unit: month } }\n      create: true",
    status: Status::There(Definition { per: Per::Field, keys: KEYS, forms: FORMS, lower }),
};

/// Exactly one of these says what is computed.
const KINDS: &[&str] = &["count", "sum", "avg", "min", "max", "first", "last", "distinct", "expr"];

/// Those whose value is looked up again among the children: their fields have a [`Field::lookup`].
const SOUGHT: &[&str] = &["min", "max", "first", "last", "distinct"];

const KEYS: &[KeyDef] = &[
    KeyDef { name: "avg", help: "The field of the children whose average is kept.", shape: ValueType::Path },
    BY_KEY,
    CLIENT_WRITES_KEY,
    KeyDef { name: "count", help: "The collection whose documents are counted.", shape: ValueType::Collection },
    CREATE_KEY,
    KeyDef {
        name: "distinct",
        help: "The field of the children of which it is kept how many different values they have.",
        shape: ValueType::Path,
    },
    EACH_KEY,
    KeyDef {
        name: "each_value",
        help: "For `distinct`: an array counts by its elements, not as one value.",
        shape: ValueType::Flag,
    },
    KeyDef { name: "expr", help: "An aggregation expression over the document itself.", shape: ValueType::Expression },
    KeyDef {
        name: "first",
        help: "The field of the children whose first value, by `sort`, is kept.",
        shape: ValueType::Path,
    },
    KeyDef {
        name: "from",
        help: "The collection of the children; `count` names it itself.",
        shape: ValueType::Collection,
    },
    KeyDef {
        name: "lag",
        help: "How late the value may be; omitted, it is right in the same transaction.",
        shape: ValueType::Duration,
    },
    KeyDef {
        name: "last",
        help: "The field of the children whose last value, by `sort`, is kept.",
        shape: ValueType::Path,
    },
    MATCH_KEY,
    KeyDef { name: "max", help: "The field of the children whose largest value is kept.", shape: ValueType::Path },
    KeyDef { name: "min", help: "The field of the children whose smallest value is kept.", shape: ValueType::Path },
    SORT_KEY,
    KeyDef { name: "sum", help: "The field of the children whose sum is kept.", shape: ValueType::Path },
    KeyDef { name: "where", help: "Which children count: a query filter.", shape: ValueType::Filter },
];

/// What may stand beside every value of children.
const OF_CHILDREN: &[&str] = &["create", "each", "match", "where", "lag", "client_writes"];

const FORMS: &[KeySet] = &[
    KeySet { required: &["count", "by"], optional: OF_CHILDREN },
    KeySet { required: &["sum", "from", "by"], optional: OF_CHILDREN },
    KeySet { required: &["avg", "from", "by"], optional: OF_CHILDREN },
    KeySet { required: &["min", "from", "by"], optional: OF_CHILDREN },
    KeySet { required: &["max", "from", "by"], optional: OF_CHILDREN },
    KeySet {
        required: &["distinct", "from", "by"],
        optional: &["each_value", "create", "each", "match", "where", "lag", "client_writes"],
    },
    KeySet { required: &["first", "from", "by", "sort"], optional: OF_CHILDREN },
    KeySet { required: &["last", "from", "by", "sort"], optional: OF_CHILDREN },
    KeySet { required: &["expr"], optional: &["client_writes"] },
];

fn lower(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    block.only(KEYS, findings);
    let kinds: Vec<&str> = KINDS.iter().copied().filter(|kind| block.get(kind).is_some()).collect();
    match kinds.as_slice() {
        ["expr"] => expression(block, target, findings),
        [kind] => aggregate(kind, block, target, findings),
        [] => {
            findings.error(
                &block.at,
                format!("{} does not say what is computed", block.at.name()),
                format!("add one of {}", spelling::one_of(KINDS.iter().copied())),
            );
            None
        }
        [first, second, ..] => {
            findings.error(
                &block.key_at(second),
                format!("`{first}` and `{second}` in one rule"),
                "a rule keeps one value: give each a field of its own",
            );
            None
        }
    }
}

fn aggregate(kind: &str, block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    let database = &target.host.db;
    let source = match kind {
        "count" => {
            if block.get("from").is_some() {
                findings.error(
                    &block.key_at("from"),
                    "`from` beside `count`",
                    "`count` already names the collection: leave out `from`",
                );
            }
            block.get("count").and_then(|item| item.collection(database, "reviews", findings))
        }
        _ => block
            .require("from", "from: <the collection of the children>", findings)
            .and_then(|item| item.collection(database, "reviews", findings)),
    };
    let path = match kind {
        "count" => None,
        _ => block.get(kind).and_then(|item| item.path("amount", findings)),
    };
    let is_sought = SOUGHT.contains(&kind);
    let children = Children::read(block, target, source, is_sought, findings);
    let client_writes = client_writes(block, findings);
    let each_value = match block.get("each_value") {
        None => Some(false),
        Some(_) if kind != "distinct" => {
            let hint = "only `distinct` counts values: leave out `each_value`";
            findings.error(&block.key_at("each_value"), format!("`each_value` beside `{kind}`"), hint);
            None
        }
        Some(item) => item.flag(findings),
    };
    let sort = match kind {
        "first" | "last" => block
            .require("sort", "sort: { date: 1 }", findings)
            .and_then(|item| sort_keys::read(&item, findings))
            .map(Some),
        _ => {
            if block.get("sort").is_some() {
                let hint = format!("`{kind}` needs no order: leave out `sort`");
                findings.error(&block.key_at("sort"), format!("`sort` beside `{kind}`"), hint);
            }
            Some(None)
        }
    };
    let path = if kind == "count" { None } else { Some(path?) };
    let (each_value, sort) = (each_value?, sort?);
    let (source, children, client_writes) = (source?, children?, client_writes?);
    let mut own = DocWriter::new();
    match &path {
        None => own.append("count", &Value::string(source)),
        Some(path) => own.append(kind, &Value::string(path.dotted())).append("from", &Value::string(source)),
    };
    own.append("by", &children.keys.by());
    if let Some(sort) = &sort {
        own.append("sort", &Value::Document(sort_keys::document(sort)));
    }
    children.write_conditions(&mut own);
    if each_value {
        own.append("each_value", &Value::Bool(true));
    }
    children.keys.write_flags(&mut own);
    let (host, link) = (target.host_field(), children.into_link());
    let field: Arc<dyn Field> = match (kind, path, sort) {
        ("min" | "max", Some(path), _) => {
            let which = if kind == "min" { Extreme::Min } else { Extreme::Max };
            Arc::new(block.compiled(ExtremeField::new(host, link, which, path), findings)?)
        }
        ("distinct", Some(path), _) => {
            Arc::new(block.compiled(DistinctField::new(host, link, path, each_value), findings)?)
        }
        (kind, Some(path), Some(sort)) => {
            let end = if kind == "first" { End::First } else { End::Last };
            let field = FirstField::new(host, link, First::new(path, SortOrder::new(sort), end));
            Arc::new(block.compiled(field, findings)?)
        }
        (kind, path, _) => {
            let tally = match (kind, path) {
                ("sum", Some(path)) => Tally::Sum(path),
                (_, Some(path)) => Tally::Avg(path),
                (_, None) => Tally::Count,
            };
            Arc::new(block.compiled(TallyField::new(host, link, tally), findings)?)
        }
    };
    debug_assert_eq!(is_sought, field.lookup() != Lookup::Never, "SOUGHT names each kind with a lookup: {kind}");
    Some(target.rule(&PATTERN, field, client_writes, own))
}

fn expression(block: &Block<'_>, target: &DeclaredField, findings: &mut Findings) -> Option<Rule> {
    for key in ["from", "by", "create", "each", "each_value", "match", "sort", "where", "lag"] {
        if block.get(key).is_some() {
            findings.error(
                &block.key_at(key),
                format!("`{key}` beside `expr`"),
                format!(
                    "an expression reads the document itself and is computed with every write of it: leave out `{key}`"
                ),
            );
        }
    }
    let client_writes = client_writes(block, findings);
    let item = block.get("expr")?;
    let expression = programs::expression(&item, &target.field, findings)?;
    let mut own = DocWriter::new();
    own.append("expr", &expression.source);
    let field = block.compiled(ExpressionField::new(target.host_field(), expression), findings)?;
    Some(target.rule(&PATTERN, Arc::new(field), client_writes?, own))
}
