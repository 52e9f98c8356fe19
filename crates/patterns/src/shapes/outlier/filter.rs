//! A filter on an outlier array (SEMANTICS R18): what it asks of the overflow, and what it is on stored documents once the owners are
//! known. Equality, `$in`, `$all`, `$elemMatch`, `$size`, `$exists` and their negations hold across both parts, also on paths inside
//! items. All other tests, numeric paths and whole arrays see the embedded part.

use crate::rule::Outlier;
use document::filter::{Filter, Node, Test};
use document::value::{Path, order};
use document::{Code, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// What is asked of an overflow: which owners have an item that passes.
#[derive(Clone, Debug)]
pub(crate) struct OverflowQuestion {
    pub(crate) outlier: Arc<Outlier>,
    pub(crate) filter: Filter,
}

/// Whether a filter tests one of the arrays.
pub(crate) fn is_about(outliers: &[Arc<Outlier>], filter: &Filter) -> bool {
    names_any(outliers, &filter.root)
}

fn names_any(outliers: &[Arc<Outlier>], node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(|node| names_any(outliers, node)),
        Node::Field { path, .. } => outliers.iter().any(|outlier| outlier.field == path.first()),
        Node::Expr(_) | Node::Whole(_) => false,
    }
}

/// What must be known before the filter can be asked of stored documents.
pub(crate) fn questions(outliers: &[Arc<Outlier>], filter: &Filter) -> Vec<OverflowQuestion> {
    let mut questions = Vec::new();
    let mut ask = |outlier: &Arc<Outlier>, node: Node| {
        questions.push(OverflowQuestion { outlier: outlier.clone(), filter: Filter::from_node(node) });
        Node::Or(Vec::new())
    };
    rewritten_node(outliers, &filter.root, &mut ask);
    questions
}

/// What is true of a stored document that is one of these owners.
pub(crate) fn is_owner(owners: Vec<Value<'static>>) -> Node {
    if owners.is_empty() { Node::Or(Vec::new()) } else { Node::field("_id", Test::among(owners)) }
}

/// The filter on stored documents; the answers are what is true of those that have an item which passes: of [`questions`], in their order.
pub(crate) fn rewritten(
    outliers: &[Arc<Outlier>],
    filter: &Filter,
    answers: impl IntoIterator<Item = Node>,
) -> Result<Filter> {
    let mut answers = answers.into_iter();
    let mut ask = |_: &Arc<Outlier>, _: Node| answers.next().unwrap_or_else(|| Node::Or(Vec::new()));
    let (expressions, others) = parts(&filter.root);
    if others.iter().any(has_expression) {
        return Err(Error::new(
            Code::NotImplemented,
            "$expr inside of $or, $nor or $and does not go together with a condition on an outlier array",
        )
        .with_hint("write $expr beside the other conditions"));
    }
    let all = Node::And(others.iter().map(|node| rewritten_node(outliers, node, &mut ask)).collect());
    let filtered = Filter::from_node(Node::all_of([all])).collated(filter.collation.clone());
    Ok(match (expressions.is_empty(), filter.source.get("$expr")) {
        (false, Some(expression)) => filtered.and(Filter {
            root: Node::And(expressions),
            source: crate::mql::document([("$expr", expression)]),
            collation: None,
        }),
        _ => filtered,
    })
}

/// What every stored document passes that may match, before anything is asked of an overflow.
pub(crate) fn superset(outliers: &[Arc<Outlier>], filter: &Filter) -> Filter {
    let (_, others) = parts(&filter.root);
    let mut kept = Vec::new();
    for node in others.iter().filter(|node| !has_expression(node)) {
        let mut ask = |outlier: &Arc<Outlier>, _: Node| Node::equality(&outlier.flag, &Value::Bool(true));
        let rewritten = rewritten_node(outliers, node, &mut ask);
        // Beneath a negation more documents would pass a condition than pass the whole.
        if !names_any(outliers, node) || !has_negation(&rewritten) {
            kept.push(rewritten);
        }
    }
    Filter::from_node(Node::all_of(kept)).collated(filter.collation.clone())
}

fn has_negation(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(has_negation),
        Node::Nor(_) => true,
        Node::Field { .. } | Node::Expr(_) | Node::Whole(_) => false,
    }
}

/// The parts of a conjunction that are expressions, and the others.
fn parts(node: &Node) -> (Vec<Node>, Vec<Node>) {
    let nodes = match node {
        Node::And(nodes) => nodes.clone(),
        other => vec![other.clone()],
    };
    nodes.into_iter().partition(|node| matches!(node, Node::Expr(_)))
}

fn has_expression(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(has_expression),
        Node::Expr(_) => true,
        Node::Field { .. } | Node::Whole(_) => false,
    }
}

type Ask<'a> = dyn FnMut(&Arc<Outlier>, Node) -> Node + 'a;

fn rewritten_node(outliers: &[Arc<Outlier>], node: &Node, ask: &mut Ask<'_>) -> Node {
    let mut all = |nodes: &[Node]| nodes.iter().map(|node| rewritten_node(outliers, node, ask)).collect();
    match node {
        Node::And(nodes) => Node::And(all(nodes)),
        Node::Or(nodes) => Node::Or(all(nodes)),
        Node::Nor(nodes) => Node::Nor(all(nodes)),
        Node::Field { path, test } => match outliers.iter().find(|outlier| outlier.field == path.first()) {
            Some(outlier) if path.parts.get(1).is_none_or(|part| part.index.is_none()) => {
                field(outlier, path, test, ask)
            }
            _ => node.clone(),
        },
        Node::Expr(_) | Node::Whole(_) => node.clone(),
    }
}

fn field(outlier: &Arc<Outlier>, path: &Path, test: &Test, ask: &mut Ask<'_>) -> Node {
    let own = || Node::Field { path: path.clone(), test: test.clone() };
    let rest = path.parts.get(1..).unwrap_or_default();
    let of_item = Path { parts: Path::new(&outlier.item).parts.into_iter().chain(rest.iter().cloned()).collect() };
    let in_overflow = match test {
        Test::Not(test) => return Node::Nor(vec![field(outlier, path, test, ask)]),
        Test::All(tests) => return Node::And(tests.iter().map(|test| field(outlier, path, test, ask)).collect()),
        Test::Size(size) if rest.is_empty() => return sized(outlier, own(), *size),
        // The whole array.
        Test::Eq(Value::Array(_)) | Test::Exists if rest.is_empty() => None,
        Test::Eq(_) | Test::In(_) if rest.is_empty() => Some(alone(outlier, &of_item, test)),
        Test::Eq(_) | Test::In(_) | Test::Exists | Test::Size(_) => {
            Some(of_document(outlier, Node::Field { path: of_item, test: test.clone() }))
        }
        Test::ElemMatch(node) if rest.is_empty() => inside(&of_item, node).map(|node| of_document(outlier, node)),
        Test::ElemMatchValue(tests) if rest.is_empty() => {
            let node = |test: &Test| Node::Field { path: of_item.clone(), test: test.clone() };
            Some(Node::all_of(tests.iter().map(node)))
        }
        Test::ElemMatch(_) | Test::ElemMatchValue(_) => {
            Some(of_document(outlier, Node::Field { path: of_item, test: test.clone() }))
        }
        Test::Lt(_) | Test::Lte(_) | Test::Gt(_) | Test::Gte(_) | Test::Leaf(_) => None,
    };
    match in_overflow {
        Some(node) => Node::Or(vec![own(), ask(outlier, node)]),
        None => own(),
    }
}

/// A test of an item that is a value: an item that is itself an array is not looked into.
fn alone(outlier: &Outlier, item: &Path, test: &Test) -> Node {
    let own = Node::Field { path: item.clone(), test: test.clone() };
    let names_array = match test {
        Test::In(set) => set.values.iter().any(|value| matches!(value, Value::Array(_))),
        _ => false,
    };
    if names_array { own } else { Node::all_of([own, no_array(outlier)]) }
}

/// A test of fields inside an item. Items without fields have not even missing ones: `followers.name: null` does not find a 5.
fn of_document(outlier: &Outlier, inside: Node) -> Node {
    let is_document = Node::field(&outlier.item, Test::Gte(Value::Document(DocWriter::new().finish())));
    Node::all_of([inside, is_document, no_array(outlier)])
}

fn no_array(outlier: &Outlier) -> Node {
    let array = Test::Gte(Value::Array(std::iter::empty::<Value<'static>>().collect()));
    Node::field(&outlier.item, Test::Not(Box::new(array)))
}

/// With overflow the count says how long the array is.
fn sized(outlier: &Outlier, embedded: Node, size: i64) -> Node {
    let flag = || Node::equality(&outlier.flag, &Value::Bool(true));
    let count = Node::equality(&outlier.count, &Value::Int64(size));
    Node::Or(vec![Node::And(vec![embedded, Node::Nor(vec![flag()])]), Node::And(vec![flag(), count])])
}

/// Conditions on the fields of an item, as conditions on a document that holds it; `None` if one reads the whole item.
fn inside(item: &Path, node: &Node) -> Option<Node> {
    let all = |nodes: &[Node]| nodes.iter().map(|node| inside(item, node)).collect::<Option<Vec<Node>>>();
    Some(match node {
        Node::And(nodes) => Node::And(all(nodes)?),
        Node::Or(nodes) => Node::Or(all(nodes)?),
        Node::Nor(nodes) => Node::Nor(all(nodes)?),
        Node::Field { path, test } => {
            let parts = item.parts.iter().chain(&path.parts).cloned().collect();
            Node::Field { path: Path { parts }, test: test.clone() }
        }
        Node::Expr(_) | Node::Whole(_) => return None,
    })
}

/// The conditions that every item passes that is removed by these values.
pub(crate) fn one_of(outlier: &Outlier, values: Vec<Value<'static>>) -> Node {
    Node::field(&outlier.item, Test::among(values))
}

/// Whether one of the items is this one.
pub(crate) fn contains(items: &[Value<'static>], wanted: &Value<'_>) -> bool {
    items.iter().any(|item| order::equal(item, wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::outlier::samples::followers;
    use bson::doc;
    use document::Doc;
    use document::pipeline::expr::Names;

    fn checked(filter: bson::Document) -> (Vec<bson::Document>, bson::Document) {
        let outliers = [Arc::new(followers(2))];
        let filter = Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap();
        let shown = |doc: &Doc<'_>| bson::Document::try_from(doc).unwrap();
        let asked: Vec<_> = questions(&outliers, &filter).iter().map(|asked| shown(&asked.filter.source)).collect();
        let owners = asked.iter().enumerate().map(|(at, _)| is_owner(vec![Value::Int32(at as i32)]));
        let owners: Vec<Node> = owners.collect();
        (asked, shown(&rewritten(&outliers, &filter, owners).unwrap().source))
    }

    #[test]
    fn owners_are_asked_for_and_put_in() {
        let owner = |id: i32| doc! { "_id": { "$in": [id] } };
        let no_array = doc! { "followerId": { "$not": { "$gte": [] } } };
        let is_document = doc! { "followerId": { "$gte": {} } };
        let is_five = doc! { "$and": [{ "followerId": { "$eq": 5 } }, no_array.clone()] };
        for (filter, asked, expected) in [
            (doc! { "name": "a" }, vec![], doc! { "name": { "$eq": "a" } }),
            (doc! { "followers": 5 }, vec![is_five.clone()], doc! { "$or": [{ "followers": { "$eq": 5 } }, owner(0)] }),
            (
                doc! { "followers": { "$ne": 5 } },
                vec![is_five],
                doc! { "$nor": [{ "$or": [{ "followers": { "$eq": 5 } }, owner(0)] }] },
            ),
            (doc! { "followers": { "$gt": 5 } }, vec![], doc! { "followers": { "$gt": 5 } }),
            (doc! { "followers.0": 5 }, vec![], doc! { "followers.0": { "$eq": 5 } }),
            (doc! { "followers": [5] }, vec![], doc! { "followers": { "$eq": [5] } }),
        ] {
            let found = checked(filter.clone());
            assert_eq!(found, (asked, expected), "{filter}");
        }
        let inside = doc! { "followers": { "$elemMatch": { "name": "a", "age": 1 } } };
        let mut asked = checked(inside).0.remove(0).get_array("$and").unwrap().clone();
        asked.sort_by_key(|condition| condition.to_string());
        let (age, name) = (doc! { "followerId.age": { "$eq": 1 } }, doc! { "followerId.name": { "$eq": "a" } });
        assert_eq!(asked, [is_document.clone(), no_array.clone(), age, name].map(bson::Bson::from));
        let (asked, size) = checked(doc! { "followers": { "$size": 3 } });
        assert!(asked.is_empty() && size.to_string().contains("followerCount"), "{size}");
        let (asked, all) = checked(doc! { "followers": { "$all": [1, 2] } });
        assert_eq!(asked.len(), 2, "{all}");
        assert_eq!(
            checked(doc! { "followers.name": { "$exists": false } }).0,
            [doc! { "$and": [{ "followerId.name": { "$exists": true } }, is_document, no_array] }]
        );
    }

    #[test]
    fn what_is_read_before_the_overflow_is_asked_holds_all_that_match() {
        let outliers = [Arc::new(followers(2))];
        let flag = doc! { "hasOverflow": { "$eq": true } };
        for (filter, expected) in [
            (doc! { "followers": 5 }, doc! { "$or": [{ "followers": { "$eq": 5 } }, flag] }),
            (doc! { "followers": { "$ne": 5 } }, doc! {}),
            (doc! { "followers": { "$ne": 5 }, "name": "a" }, doc! { "name": { "$eq": "a" } }),
        ] {
            let parsed = Filter::parse(&Doc::from(filter.clone()), &mut Names::new()).unwrap();
            let found = bson::Document::try_from(&superset(&outliers, &parsed).source).unwrap();
            assert_eq!(found, expected, "{filter}");
        }
    }

    #[test]
    fn an_expression_stays_beside_the_conditions() {
        let expression = doc! { "$eq": ["$a", "$b"] };
        let (_, found) = checked(doc! { "followers": 5, "$expr": expression.clone() });
        assert!(found.to_string().contains("$expr"), "{found}");
        let outliers = [Arc::new(followers(2))];
        let nested = doc! { "$or": [{ "followers": 5 }, { "$expr": expression }] };
        let nested = Filter::parse(&Doc::from(nested), &mut Names::new()).unwrap();
        assert_eq!(rewritten(&outliers, &nested, [is_owner(vec![])]).unwrap_err().code(), Code::NotImplemented);
    }
}
