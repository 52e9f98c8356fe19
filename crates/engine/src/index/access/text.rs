//! Plans for `$text`: the terms to look up in the text index, and what the other conditions do.
//!
//! A search is bound to the index of its collection first ([`bind`]). Keys of the index before the text must be given by equality;
//! conditions on those behind it are tested on the entries. Under `$or` every alternative needs an index.

use super::choose::{Query, by_one_index, promise};
use super::hint::planner;
use super::implies::implies;
use super::plan::{Plan, Source};
use super::predicate::Conditions;
use super::ranges::KeyRange;
use crate::catalog::{Collection, Index, TextKeys};
use crate::index::text_entries::{append, indexed_term};
use crate::store::keys::{KEPT_FIELDS, PREFIX, after_prefix, index_prefix};
use document::filter::{Filter, Node, Test};
use document::op::{Hint, Namespace};
use document::text::TextQuery;
use document::text::node::index_required;
use document::value::key::TypeBits;
use document::{Code, Error, Result, Value};
use std::sync::Arc;

/// A search in a text index.
#[derive(Clone, Debug)]
pub struct TextScan {
    pub index: Arc<Index>,
    pub keys: TextKeys,
    pub query: Arc<TextQuery>,
    /// The values of the keys before the text.
    pub prefix: Vec<Value<'static>>,
    /// One for each term, in the order of terms backwards: read backwards, the first term comes first and its best score too.
    pub ranges: Vec<KeyRange>,
    /// The bytes of a range's start are the bytes before a score, unless the keys before it are too long for an entry.
    pub exact: bool,
    /// Tests on the values of keys behind the text, by key.
    pub key_tests: Vec<(usize, Test)>,
    /// All that a document must match, for entries that do not say what they were and for documents that changed meanwhile.
    pub filter: Node,
    /// Whether documents come by their score, the best first.
    pub by_score: bool,
    /// Whether documents carry their score.
    pub carries: bool,
}

/// The filter with its search bound to the collection's text index; `None` if it has none to bind.
pub fn bind(
    collection: Option<&Collection>,
    ns: &Namespace,
    filter: &Filter,
    hint: Option<&Hint>,
) -> Result<Option<Filter>> {
    if !filter.has_text() {
        return Ok(None);
    }
    let Some(collection) = collection.filter(|collection| collection.view().is_none()) else {
        return Err(index_required(&format!(" (no such collection '{ns}')")));
    };
    let Some(keys) = collection.text_index().filter(|index| index.ready).and_then(|index| index.text.as_ref()) else {
        return Err(index_required(""));
    };
    let bound = filter.bound_to(&keys.spec)?;
    match hint.filter(|hint| !matches!(hint, Hint::Keys(keys) if keys.is_empty())) {
        None => Ok(Some(bound)),
        Some(_) => Err(Error::bad_value("text and hint not allowed in same query")),
    }
}

/// The plan for a filter with a bound search.
pub(super) fn plan(collection: &Collection, query: &Query<'_>) -> Result<Plan> {
    let index = collection.text_index().filter(|index| index.ready && !index.hidden);
    let Some((index, keys)) = index.and_then(|index| index.text.as_ref().map(|keys| (index, keys))) else {
        let why = "need exactly one text index for $text query";
        return Err(planner(Code::NoQueryExecutionPlans, collection, query, why));
    };
    let planning = Planning { collection, query, index, keys };
    let mut nodes = Vec::new();
    query.filter.root.each_required(&mut |node| nodes.push(node));
    planning.of_all(&nodes, &[])
}

struct Planning<'p> {
    collection: &'p Collection,
    query: &'p Query<'p>,
    index: &'p Arc<Index>,
    keys: &'p TextKeys,
}

impl Planning<'_> {
    /// The plan for conditions that all must hold; those of `outer` stand around an `$or` and give no prefix.
    fn of_all(&self, nodes: &[&Node], outer: &[&Node]) -> Result<Plan> {
        if let Some(at) = nodes.iter().position(|node| node.text().is_some()) {
            return self.search(at, nodes, outer);
        }
        let Some(at) = nodes.iter().position(|node| node.has_text()) else { return Err(index_required("")) };
        let Some(Node::Or(branches)) = nodes.get(at) else { return Err(index_required("")) };
        let others = nodes.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, node)| *node);
        let outer: Vec<&Node> = outer.iter().copied().chain(others).collect();
        // The search first: a document that it finds has its score, whatever else finds it.
        let (searching, indexed): (Vec<&Node>, Vec<&Node>) = branches.iter().partition(|branch| branch.has_text());
        let mut plans = Vec::with_capacity(branches.len());
        for branch in searching {
            let mut inner = Vec::new();
            branch.each_required(&mut |node| inner.push(node));
            plans.push(self.of_all(&inner, &outer)?);
        }
        for branch in indexed {
            plans.push(self.by_index(branch, &outer)?);
        }
        let ordered = self.query.sort().is_none();
        Ok(Plan { source: Source::Union(plans), residual: None, ordered })
    }

    /// An alternative that does not search.
    fn by_index(&self, branch: &Node, outer: &[&Node]) -> Result<Plan> {
        let nodes = std::iter::once(branch).chain(outer.iter().copied()).cloned();
        let filter = Filter::from_node(Node::all_of(nodes));
        let query = Query { filter: &filter, sort: None, needed: None, ..*self.query };
        let conditions = Conditions::of(&filter.root, self.query.env);
        by_one_index(self.collection, &conditions, &query).into_iter().min_by_key(promise).ok_or_else(|| {
            let why = "Failed to produce a solution for TEXT under OR - other non-TEXT clauses under OR have to be indexed as well.";
            planner(Code::NoQueryExecutionPlans, self.collection, self.query, why)
        })
    }

    fn search(&self, at: usize, nodes: &[&Node], outer: &[&Node]) -> Result<Plan> {
        let Some((query, _)) = nodes.get(at).and_then(|node| node.text()).and_then(|text| text.query()) else {
            return Err(index_required(""));
        };
        let all = Node::all_of(nodes.iter().chain(outer).map(|node| (*node).clone()));
        let unusable = || {
            let why = "failed to use text index to satisfy $text query (if text index is compound, are equality predicates given for all prefix fields?)";
            planner(Code::NoQueryExecutionPlans, self.collection, self.query, why)
        };
        if !self.index.partial.as_ref().is_none_or(|partial| implies(&all, &partial.root, self.query.env)) {
            return Err(unusable());
        }
        let mut proven = vec![false; nodes.len()];
        let mut prove = |at: usize| {
            if let Some(proven) = proven.get_mut(at) {
                *proven = true;
            }
        };
        prove(at);
        let mut prefix = Vec::new();
        for key in self.index.keys.iter().take(self.keys.at) {
            let equality = nodes.iter().enumerate().find_map(|(at, node)| match node {
                Node::Field { path, test } if *path == key.path => Some((at, equality(test)?)),
                _ => None,
            });
            let (at, value) = equality.ok_or_else(unusable)?;
            prove(at);
            prefix.push(value.clone());
        }
        let mut key_tests = Vec::new();
        for (place, key) in self.index.keys.iter().enumerate().skip(self.keys.at + 2) {
            for (at, node) in nodes.iter().enumerate() {
                if let Node::Field { path, test } = node
                    && *path == key.path
                    && is_told_by_entries(test)
                {
                    key_tests.push((place, test.clone()));
                    prove(at);
                }
            }
        }
        let left = nodes.iter().zip(&proven).filter(|(_, proven)| !**proven).map(|(node, _)| *node);
        let left: Vec<Node> = left.chain(outer.iter().copied()).cloned().collect();
        let residual = (!left.is_empty()).then(|| Node::all_of(left));
        let (ranges, exact) = self.ranges(query, &prefix);
        // Alternatives are put together first, and sorted then.
        let alone = outer.is_empty() && self.query.filter.root.text().is_some()
            || matches!(&self.query.filter.root, Node::And(nodes) if nodes.iter().any(|node| node.text().is_some()));
        let sort = self.query.sort();
        let by_score = alone && sort.is_some_and(|sort| matches!(sort.keys.as_slice(), [key] if key.is_by_score()));
        let carries = self.query.score || (!by_score && sort.is_some_and(|sort| sort.reads_score()));
        let scan = TextScan {
            index: self.index.clone(),
            keys: self.keys.clone(),
            query: query.clone(),
            prefix,
            ranges,
            exact,
            key_tests,
            filter: all,
            by_score,
            carries,
        };
        Ok(Plan { source: Source::Text(Arc::new(scan)), residual, ordered: by_score || sort.is_none() })
    }

    /// The entries of each term, and whether their bounds are whole.
    fn ranges(&self, query: &TextQuery, prefix: &[Value<'static>]) -> (Vec<KeyRange>, bool) {
        let (mut start, mut types) = (index_prefix(self.index.id).to_vec(), TypeBits::new());
        for (key, value) in self.index.keys.iter().zip(prefix) {
            append(&mut start, &mut types, value, key.descending);
        }
        let mut exact = true;
        let mut ranges: Vec<KeyRange> = query
            .lookups
            .iter()
            .rev()
            .map(|term| {
                let mut from = start.clone();
                append(&mut from, &mut types, &Value::from(&*indexed_term(term)), false);
                exact &= from.len() <= PREFIX + KEPT_FIELDS;
                from.truncate(PREFIX + KEPT_FIELDS);
                let to = after_prefix(&from).unwrap_or_default();
                KeyRange { from, to }
            })
            .collect();
        if !exact {
            ranges.dedup();
        }
        (ranges, exact)
    }
}

/// The one value that passes.
fn equality(test: &Test) -> Option<&Value<'static>> {
    match test {
        Test::Eq(value) => Some(value),
        Test::In(set) => match (set.values.as_slice(), set.regexes.is_empty()) {
            ([only], true) => Some(only),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an entry, where a missing value is null, tells what the document would.
fn is_told_by_entries(test: &Test) -> bool {
    match test {
        Test::Eq(value) | Test::Lt(value) | Test::Lte(value) | Test::Gt(value) | Test::Gte(value) => {
            !value.is_nullish()
        }
        Test::In(set) => !set.values.iter().any(Value::is_nullish),
        _ => false,
    }
}
