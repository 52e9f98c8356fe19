//! Which fields a filter reads.

use super::{Filter, Node};
use crate::value::Path;

impl Filter {
    /// The paths it reads, sorted, each once; `None` if it reads the whole document. What lies under a path is read too.
    pub fn reads(&self) -> Option<Vec<Path>> {
        let mut paths = Vec::new();
        collect(&self.root, &mut paths)?;
        paths.sort();
        paths.dedup();
        Some(paths)
    }
}

fn collect(node: &Node, paths: &mut Vec<Path>) -> Option<()> {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.iter().try_for_each(|node| collect(node, paths))?;
        }
        Node::Field { path, .. } => paths.push(path.clone()),
        Node::Expr(expr) => paths.extend(expr.reads()?),
        Node::Whole(_) => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Doc;
    use crate::pipeline::expr::Names;
    use bson::doc;

    #[test]
    fn paths_of_a_filter() {
        for (filter, paths) in [
            (doc! {}, Some("")),
            (doc! { "a.b": 1, "$or": [ { "c": { "$gt": 1 } }, { "a.b": 2 } ] }, Some("a.b c")),
            (doc! { "x": { "$elemMatch": { "y": 1 } } }, Some("x")),
            (doc! { "$expr": { "$gt": ["$p", "$q.r"] } }, Some("p q.r")),
            (doc! { "$expr": { "$eq": ["$$ROOT", 1] } }, None),
            (doc! { "$jsonSchema": { "required": ["a"] } }, None),
        ] {
            let parsed = Filter::parse(&Doc::from(filter.clone()), &mut Names::new()).unwrap();
            let reads = parsed.reads().map(|paths| paths.iter().map(Path::dotted).collect::<Vec<_>>().join(" "));
            assert_eq!(reads.as_deref(), paths, "{filter}");
        }
    }
}
