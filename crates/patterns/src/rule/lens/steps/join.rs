//! `join: { address: { from: [street, city], with: ", " } }`: several texts become one. The inverse of a split.

use super::text_parts::TextParts;
use super::{ChangedPaths, Conversion, Origin, VersionStep, unknown_among};
use document::value::Path;

#[derive(Clone, Debug)]
pub struct Join {
    pub into: Path,
    pub from: Vec<Path>,
    pub with: String,
}

impl Join {
    fn text(&self) -> TextParts<'_> {
        TextParts { whole: &self.into, parts: &self.from, separator: &self.with }
    }
}

impl VersionStep for Join {
    fn up(&self) -> Conversion {
        self.text().glue()
    }

    fn down(&self) -> Conversion {
        self.text().cut()
    }

    fn changed(&self) -> ChangedPaths {
        ChangedPaths::Paths(self.text().paths())
    }

    fn origin(&self, path: &Path) -> Origin {
        unknown_among(path, &self.text().paths())
    }

    fn destination(&self, path: &Path) -> Origin {
        self.origin(path)
    }

    fn losses(&self) -> Vec<String> {
        vec![self.text().loss()]
    }
}
