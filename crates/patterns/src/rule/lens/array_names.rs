//! What an array that overflows is called in an older version: such an array is written by its own operators, which a rename leaves as
//! they are but for the name (SEMANTICS R18, R34).

use super::{ChangedPaths, Lens, steps};
use document::value::Path;
use document::{Doc, DocWriter, Result, Value};

/// An array under the name that it has in an older version, and under its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayName {
    pub older: String,
    pub newest: String,
}

impl Lens {
    /// What clients of a version call a field of the first level; `None` if a step since then does more to it than to rename it.
    pub fn name_at(&self, version: i32, field: &str) -> Option<String> {
        let mut names = vec![Path::new(field)];
        let mut others = Vec::new();
        for step in self.from(version).flatten().collect::<Vec<_>>().into_iter().rev() {
            let newest_of = names.last()?;
            match step.renamed() {
                Some((from, to)) if to == newest_of && from.parts.len() == 1 => names.push(from.clone()),
                _ => others.push(step.changed()),
            }
        }
        let concerns = |changed: &ChangedPaths| match changed {
            ChangedPaths::Everything => true,
            ChangedPaths::Paths(paths) => paths.iter().any(|path| names.iter().any(|name| steps::overlap(path, name))),
        };
        match others.iter().any(concerns) {
            true => None,
            false => names.pop().map(|name| name.dotted()),
        }
    }

    /// The same versions to clients who call these arrays by their own names already.
    pub fn with_own_names(&self, version: i32, arrays: &[ArrayName]) -> Result<Lens> {
        let first = usize::try_from(version - 1).unwrap_or_default();
        let mut wanted: Vec<Path> = arrays.iter().map(|array| Path::new(&array.newest)).collect();
        let mut versions = self.versions.clone();
        for steps in versions.iter_mut().skip(first).rev() {
            let mut kept = Vec::new();
            for step in steps.drain(..).rev() {
                let place = step.renamed().and_then(|(_, to)| wanted.iter().position(|name| name == to));
                match (place.and_then(|place| wanted.get_mut(place)), step.renamed()) {
                    (Some(name), Some((from, _))) => *name = from.clone(),
                    _ => kept.push(step),
                }
            }
            kept.reverse();
            *steps = kept;
        }
        Lens::new(&self.field, versions, self.migrate.clone())
    }
}

/// Operators on arrays under their own names.
pub fn with_own_names(spec: &Doc<'_>, arrays: &[ArrayName]) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(spec.as_bytes().len());
    for (operator, fields) in spec.iter() {
        let Value::Document(fields) = fields else {
            writer.append(operator.as_str(), &fields);
            continue;
        };
        let mut named = DocWriter::with_capacity(fields.as_bytes().len());
        for (path, argument) in fields.iter() {
            named.append(&own_name(path.as_str(), arrays), &argument);
        }
        writer.append(operator.as_str(), &Value::Document(named.finish()));
    }
    writer.finish()
}

fn own_name(path: &str, arrays: &[ArrayName]) -> String {
    let (first, rest) = path.split_at(path.find('.').unwrap_or(path.len()));
    match arrays.iter().find(|array| array.older == first) {
        Some(array) => format!("{}{rest}", array.newest),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mql::call;
    use crate::rule::lens::steps::{Nest, Pipelines, Rename, Wrap, stages_of};
    use crate::rule::lens::{Migrate, VersionStep, VersionSteps};
    use bson::doc;
    use document::Env;
    use std::sync::Arc;

    fn rename(from: &str, to: &str) -> Arc<dyn VersionStep> {
        Arc::new(Rename { from: Path::new(from), to: Path::new(to) })
    }

    fn lens(versions: Vec<VersionSteps>) -> Lens {
        Lens::new("v", versions, Migrate::default()).unwrap()
    }

    #[test]
    fn an_array_has_a_name_in_each_version() {
        let twice = lens(vec![vec![rename("a", "b"), rename("x", "y")], vec![rename("b", "c")]]);
        for (version, name) in [(1, "a"), (2, "b"), (3, "c")] {
            assert_eq!(twice.name_at(version, "c").as_deref(), Some(name), "{version}");
        }
        assert_eq!(twice.name_at(1, "other").as_deref(), Some("other"));
        let nest = Nest { from: Path::new("b"), into: Path::new("b.in"), with: Vec::new() };
        let stages = stages_of(&[call("$unset", Value::from("a"))].into_iter().collect());
        let own = Pipelines { up: stages.clone(), down: stages };
        let others: [Arc<dyn VersionStep>; 4] =
            [Arc::new(Wrap { path: Path::new("a") }), Arc::new(nest), Arc::new(own), rename("old.a", "a")];
        for other in others {
            let more = lens(vec![vec![other.clone()], vec![rename("a", "b")]]);
            assert_eq!(more.name_at(1, "b"), None, "{other:?}");
        }
    }

    #[test]
    fn clients_who_know_the_own_name_see_the_other_steps() {
        let all = lens(vec![vec![rename("a", "b"), rename("x", "y")], vec![rename("b", "c")]]);
        let names = [ArrayName { older: "a".into(), newest: "c".into() }];
        let own = all.with_own_names(1, &names).unwrap();
        let newest = Doc::from(doc! { "_id": 1, "c": [1, 2], "y": 3, "v": 3 });
        let seen = own.seen(&newest, 1, &Env::fixed()).unwrap();
        assert_eq!(seen, Doc::from(doc! { "_id": 1, "c": [1, 2], "v": 1, "x": 3 }));
    }

    #[test]
    fn operators_get_the_own_name() {
        let names = [ArrayName { older: "a".into(), newest: "c".into() }];
        let update = Doc::from(doc! { "$set": { "a.$[e]": 1, "ab": 2 }, "$push": { "a": { "$each": [] } } });
        let expected = Doc::from(doc! { "$set": { "c.$[e]": 1, "ab": 2 }, "$push": { "c": { "$each": [] } } });
        assert_eq!(with_own_names(&update, &names), expected);
    }
}
