//! The parts of a declaration that are MongoDB's own language, `where` and `expr`: compiled here, so that their mistakes are
//! found at their place in the file.

use crate::declare::block::BlockItem;
use crate::declare::finding::{At, Findings};
use crate::declare::tree::{MapEntry, Node, NodeContent};
use crate::fields::Expression;
use crate::rule::owned::STATE;
use document::filter::{self, Filter};
use document::pipeline::Pipeline;
use document::pipeline::expr::{self, Expr, Names};
use document::value::Path;
use document::{ArrayWriter, DocWriter, Value};

/// A `where`: the same answer for the same document, always.
pub(crate) fn filter(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Filter> {
    let doc = item.document("{ status: paid }", findings)?;
    match Filter::parse(&doc, &mut Names::new()) {
        Ok(filter) => {
            if let Some(what) = draws_lots(item.node).or_else(|| unsteady_filter(&filter.root)) {
                findings.error(
                    &item.at,
                    format!("`where` uses {what}: which children count would change without a write"),
                    "use only the children's own fields",
                );
                return None;
            }
            if filter.reads().is_some_and(|reads| reads.iter().any(|path| path.first() == STATE)) {
                findings.error(
                    &item.at,
                    format!("`where` reads `{STATE}`, which holds Pleach's own state"),
                    "use the children's own fields",
                );
                return None;
            }
            Some(filter)
        }
        Err(error) => {
            findings.error(
                &blamed(item, error.message()),
                format!("`where` is no filter: {}", error.message()),
                "write it as in `find`: `where: { status: paid }`",
            );
            None
        }
    }
}

/// An `expr` that keeps `field`: of the document itself, but not of the field.
pub(crate) fn expression(item: &BlockItem<'_>, field: &Path, findings: &mut Findings) -> Option<Expression> {
    const EXAMPLE: &str = "write an aggregation expression: `expr: { $subtract: [$price, $cost] }`";
    if item.node.is_empty() {
        findings.error(&item.at, "`expr` is empty", EXAMPLE);
        return None;
    }
    let source = item.node.to_value();
    let parsed = expr::parse(&source, &mut Names::new()).and_then(|parsed| Ok((parsed, compile(field, &source)?)));
    let (parsed, set) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            findings.error(
                &blamed(item, error.message()),
                format!("`expr` is no expression: {}", error.message()),
                EXAMPLE,
            );
            return None;
        }
    };
    if let Some(what) = draws_lots(item.node).or_else(|| unsteady(&parsed)) {
        findings.error(
            &item.at,
            format!("`expr` uses {what}: its value would change without a write"),
            "use only the document's own fields",
        );
        return None;
    }
    let Some(mut reads) = parsed.reads() else {
        findings.error(
            &item.at,
            "`expr` reads the whole document ($$ROOT), and so the field that it keeps",
            "name the fields that it needs",
        );
        return None;
    };
    reads.sort();
    reads.dedup();
    if reads.iter().any(|path| path.first() == STATE) {
        findings.error(
            &item.at,
            format!("`expr` reads `{STATE}`, which holds Pleach's own state"),
            "name the field that it is the state of",
        );
        return None;
    }
    if let Some(own) = reads.iter().find(|path| path.is_prefix_of(field) || field.is_prefix_of(path)) {
        findings.error(
            &item.at,
            format!("`expr` reads `{own}`, the field that it keeps"),
            "compute it from other fields",
        );
        return None;
    }
    if reads.is_empty() {
        findings.warning(
            &item.at,
            "`expr` reads no field: its value is the same in every document",
            "name a field with its `$`: `$price`",
        );
    }
    Some(Expression { source, set, reads })
}

/// `[{ $set: { <field>: <expression> } }]`. A plain map is wrapped: `$set` would merge it into what is there.
fn compile(field: &Path, source: &Value<'static>) -> document::Result<Pipeline> {
    let plain = matches!(source, Value::Document(doc) if !doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$')));
    let mut stage = DocWriter::new();
    stage.start_document("$set");
    if plain {
        stage.start_document(&field.dotted()).start_array("$mergeObjects").append("0", source).end().end();
    } else {
        stage.append(&field.dotted(), source);
    }
    stage.end();
    let mut stages = ArrayWriter::new();
    stages.push(&Value::Document(stage.finish()));
    Pipeline::parse_update(&stages.finish(), &mut Names::new())
}

/// The operator that the language's message names, if it stands in the item; else the item.
fn blamed(item: &BlockItem<'_>, message: &str) -> At {
    fn search<'n>(node: &'n Node, message: &str) -> Option<&'n MapEntry> {
        match &node.content {
            NodeContent::Map(entries) => entries.iter().find_map(|entry| {
                let named = entry.key.starts_with('$') && message.contains(&entry.key);
                search(&entry.value, message).or(named.then_some(entry))
            }),
            NodeContent::List(items) => items.iter().find_map(|item| search(item, message)),
            NodeContent::Scalar(_) => None,
        }
    }
    // Operators are short, and so is the part of a message that names one.
    let message: &str = &message.chars().take(500).collect::<String>();
    match search(item.node, message) {
        Some(entry) => At { spot: entry.spot.or(item.at.spot), ..item.at.clone() },
        None => item.at.clone(),
    }
}

/// What makes an expression give another value for the same document.
fn unsteady(expr: &Expr) -> Option<&'static str> {
    match expr {
        Expr::Now => return Some("the time ($$NOW)"),
        Expr::ClusterTime => return Some("the time ($$CLUSTER_TIME)"),
        _ => {}
    }
    let mut found = None;
    expr.operands(&mut |operand| found = found.or_else(|| unsteady(operand)));
    found
}

/// An operator that draws lots, by its name: it is no part of the compiled program's shape.
fn draws_lots(node: &Node) -> Option<&'static str> {
    match &node.content {
        NodeContent::Map(entries) => entries.iter().find_map(|entry| match entry.key.as_str() {
            "$rand" => Some("$rand"),
            "$sampleRate" => Some("$sampleRate"),
            "$literal" => None,
            _ => draws_lots(&entry.value),
        }),
        NodeContent::List(items) => items.iter().find_map(draws_lots),
        NodeContent::Scalar(_) => None,
    }
}

fn unsteady_filter(node: &filter::Node) -> Option<&'static str> {
    use filter::Node;
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().find_map(unsteady_filter),
        Node::Expr(expr) => unsteady(expr),
        Node::Field { .. } | Node::Whole(_) => None,
    }
}
