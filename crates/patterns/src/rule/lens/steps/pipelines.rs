//! `{ up: [ … ], down: [ … ] }`: both ways written by hand, as the pipelines of updates.

use super::{ChangedPaths, Conversion, Origin, VersionStep, unknown_among};
use document::value::Path;
use document::{Array, Value};

#[derive(Clone, Debug)]
pub struct Pipelines {
    pub up: Vec<Value<'static>>,
    pub down: Vec<Value<'static>>,
}

/// The stages of an array.
pub fn stages_of(stages: &Array<'_>) -> Vec<Value<'static>> {
    stages.iter().map(Value::into_owned).collect()
}

impl Pipelines {
    /// The paths that the stages name as what they set or remove; `None` if a stage may change any.
    fn named(&self) -> Option<Vec<Path>> {
        let mut paths = Vec::new();
        for stage in self.up.iter().chain(&self.down) {
            let Value::Document(stage) = stage else { return None };
            let (name, spec) = stage.iter().next()?;
            match (name.as_str(), spec) {
                ("$set" | "$addFields", Value::Document(fields)) => {
                    paths.extend(fields.iter().map(|(path, _)| Path::new(path.as_str())));
                }
                ("$unset", Value::String(path)) => paths.push(Path::new(path.as_str())),
                ("$unset", Value::Array(all)) => {
                    paths.extend(all.iter().filter_map(|path| path.as_str().map(Path::new)));
                }
                _ => return None,
            }
        }
        Some(paths)
    }
}

impl VersionStep for Pipelines {
    fn up(&self) -> Conversion {
        Conversion::Stages(self.up.clone())
    }

    fn down(&self) -> Conversion {
        Conversion::Stages(self.down.clone())
    }

    fn changed(&self) -> ChangedPaths {
        self.named().map_or(ChangedPaths::Everything, ChangedPaths::Paths)
    }

    fn origin(&self, path: &Path) -> Origin {
        self.named().map_or(Origin::Unknown, |paths| unknown_among(path, &paths))
    }

    fn destination(&self, path: &Path) -> Origin {
        self.origin(path)
    }

    /// Only their author knows.
    fn losses(&self) -> Vec<String> {
        Vec::new()
    }
}
