//! The places of removed fields. In MongoDB a field that a stage takes away, or computes to nothing, keeps its place: when a
//! later stage sets it again, it comes where it was and not at the end. Here a stage leaves a place ([`kind::PLACE`]) only if a
//! later one sets a field of that name; what leaves the pipeline is freed of them by [`Tidy`].
//!
//! [`kind::PLACE`]: crate::raw::kind

use super::{Role, Rows, Run, Stage, Stream, Transform};
use crate::env::Env;
use crate::error::Result;
use crate::raw::{Doc, without_places};
use crate::value::{Path, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// Which names stages set, and where in the pipeline that is done last.
#[derive(Clone, Debug, Default)]
pub(in crate::pipeline) struct Setters(HashMap<String, usize>);

impl Setters {
    pub(super) fn of(stages: &[Doc<'_>]) -> Setters {
        let mut setters = Setters::default();
        for (at, stage) in stages.iter().enumerate().skip(1) {
            setters.add_stage(stage, at);
        }
        setters
    }

    /// Whether a stage behind the one at `at` sets a field of that name, on whatever level.
    pub(in crate::pipeline) fn sets_behind(&self, at: usize, name: &str) -> bool {
        self.0.get(name).is_some_and(|last| *last > at)
    }

    fn add_stage(&mut self, stage: &Doc<'_>, at: usize) {
        let Some((name, Value::Document(spec))) = stage.iter().next() else { return };
        match name.as_str() {
            "$addFields" | "$set" => self.add_fields(&spec, at, |_| true),
            // What is included or left out is not set.
            "$project" => {
                self.add_fields(&spec, at, |value| !value.is_number() && !matches!(value, Value::Bool(_)));
            }
            "$lookup" | "$graphLookup" => self.add_path(spec.get("as").as_ref(), at),
            "$unwind" => self.add_path(spec.get("includeArrayIndex").as_ref(), at),
            "$facet" => {
                for (_, inner) in spec.iter() {
                    let Value::Array(stages) = inner else { continue };
                    for stage in stages.iter() {
                        if let Value::Document(stage) = stage {
                            self.add_stage(&stage, at);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Goes into expressions too, whose names are set by nobody: a place too many is tidied away.
    fn add_fields(&mut self, spec: &Doc<'_>, at: usize, is_set: fn(&Value<'_>) -> bool) {
        for (name, value) in spec.iter().filter(|(_, value)| is_set(value)) {
            self.add_path(Some(&Value::String(name)), at);
            if let Value::Document(inner) = value {
                self.add_fields(&inner, at, is_set);
            }
        }
    }

    fn add_path(&mut self, path: Option<&Value<'_>>, at: usize) {
        for part in path.and_then(Value::as_str).into_iter().flat_map(|path| path.split('.')) {
            match self.0.get_mut(part) {
                Some(last) => *last = at,
                None => {
                    self.0.insert(part.to_owned(), at);
                }
            }
        }
    }
}

/// The last stage of a pipeline in which places are left. No client wrote it, so it has no name.
#[derive(Debug)]
pub(super) struct Tidy;

impl Stage for Tidy {
    fn name(&self) -> &'static str {
        ""
    }

    fn start(self: Arc<Self>, input: Rows, _run: &Run) -> Result<Rows> {
        Ok(Box::new(Tidied(input)))
    }

    fn role(&self) -> Role<'_> {
        Role::Transform(self)
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        after
    }

    fn keeps(&self, _path: &Path) -> bool {
        true
    }
}

struct Tidied(Rows);

impl Stream for Tidied {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        Ok(self.0.next()?.map(|doc| without_places(&doc).unwrap_or(doc)))
    }

    fn pause(&mut self) {
        self.0.pause();
    }
}

impl Transform for Tidy {
    fn apply(&self, doc: &Doc<'_>, _env: &Env) -> Result<Doc<'static>> {
        Ok(without_places(doc).unwrap_or_else(|| doc.clone().into_owned()))
    }
}
