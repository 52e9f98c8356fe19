//! Whether every document that one filter matches is matched by another: what makes a partial index usable.

use super::bounds::{self, Exactness, FieldKind};
use document::Env;
use document::Value;
use document::filter::{Node, Test};

/// Whether `query` implies `wanted`, as far as can be seen. False only costs an index.
pub fn implies(query: &Node, wanted: &Node, env: &Env) -> bool {
    match (query, wanted) {
        (_, Node::And(parts)) => parts.iter().all(|part| implies(query, part, env)),
        (Node::Or(branches), _)
            if !branches.is_empty() && branches.iter().all(|branch| implies(branch, wanted, env)) =>
        {
            true
        }
        (_, Node::Or(alternatives)) if alternatives.iter().any(|alternative| implies(query, alternative, env)) => true,
        (Node::And(parts), _) => parts.iter().any(|part| implies(part, wanted, env)),
        (Node::Field { path, test }, Node::Field { path: wanted_path, test: wanted }) => {
            path == wanted_path && test_implies(test, wanted, env)
        }
        _ => false,
    }
}

fn test_implies(test: &Test, wanted: &Test, env: &Env) -> bool {
    if matches!(wanted, Test::Exists) {
        let negative = matches!(test, Test::Not(_));
        return !negative && !test.matches_value(&Value::Missing, env).unwrap_or(true);
    }
    if test.to_query() == wanted.to_query() {
        return true;
    }
    // A value in the first intervals is in the second, where it proves the match. Either field may hold arrays.
    let field = FieldKind { multikey: true, sparse_alone: false };
    match (bounds::of_test(test, field), bounds::of_test(wanted, field)) {
        (Some((have, _)), Some((allowed, Exactness::Exact))) => have.intersect(&allowed.complement()).is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use document::Doc;
    use document::filter::Filter;
    use document::pipeline::expr::Names;

    #[test]
    fn narrower_filters_imply_wider_ones() {
        let parse = |filter: bson::Document| Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap().root;
        let check = |query: bson::Document, wanted: bson::Document, expected: bool| {
            let (a, b) = (parse(query.clone()), parse(wanted.clone()));
            assert_eq!(implies(&a, &b, &Env::fixed()), expected, "{query} implies {wanted}");
        };
        check(doc! {"a": 5}, doc! {"a": {"$gt": 3}}, true);
        check(doc! {"a": 3}, doc! {"a": {"$gt": 3}}, false);
        check(doc! {"a": "x"}, doc! {"a": {"$gt": 3}}, false);
        check(doc! {"a": {"$gt": 4, "$lt": 9}, "b": 1}, doc! {"a": {"$gt": 3}}, true);
        check(doc! {"a": {"$gte": 3}}, doc! {"a": {"$gt": 3}}, false);
        check(doc! {"a": {"$in": [4, 5]}}, doc! {"a": {"$gt": 3}}, true);
        check(doc! {"a": {"$in": [2, 5]}}, doc! {"a": {"$gt": 3}}, false);
        check(doc! {"a": {"$in": []}}, doc! {"a": {"$gt": 3}}, true);
        check(doc! {"a": 5}, doc! {"a": {"$exists": true}}, true);
        check(doc! {"a": {"$ne": 5}}, doc! {"a": {"$exists": true}}, false);
        check(doc! {"a": null}, doc! {"a": {"$exists": true}}, false);
        check(doc! {"a": null}, doc! {"a": null}, true);
        check(doc! {"b": 5}, doc! {"a": {"$exists": true}}, false);
        check(doc! {"a": 5, "b": 1}, doc! {"a": 5, "b": {"$type": "int"}}, false);
        check(doc! {"a": 5, "b": 1}, doc! {"a": 5, "b": {"$type": "number"}}, true);
        check(doc! {"a": 5}, doc! {"a": 5, "b": 1}, false);
        check(doc! {"$or": [{"a": 5}, {"a": {"$gt": 7}}]}, doc! {"a": {"$gt": 3}}, true);
        check(doc! {"$or": [{"a": 5}, {"b": 7}]}, doc! {"a": {"$gt": 3}}, false);
        check(doc! {"a": 5}, doc! {"$or": [{"a": {"$lt": 3}}, {"a": {"$gt": 4}}]}, true);
        check(doc! {}, doc! {"a": {"$gt": 3}}, false);
        check(doc! {"a": [5]}, doc! {"a": {"$gt": 3}}, false);
        check(doc! {"a": {"$elemMatch": {"$gt": 5}}}, doc! {"a": {"$gt": 3}}, true);
    }
}
