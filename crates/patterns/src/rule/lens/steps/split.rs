//! `split: { name: { into: [first, last], on: " " } }`: a text becomes several, cut at the first separators.

use super::text_parts::TextParts;
use super::{ChangedPaths, Conversion, Origin, VersionStep, unknown_among};
use document::value::Path;

#[derive(Clone, Debug)]
pub struct Split {
    pub from: Path,
    pub into: Vec<Path>,
    pub on: String,
}

impl Split {
    fn text(&self) -> TextParts<'_> {
        TextParts { whole: &self.from, parts: &self.into, separator: &self.on }
    }
}

impl VersionStep for Split {
    fn up(&self) -> Conversion {
        self.text().cut()
    }

    fn down(&self) -> Conversion {
        self.text().glue()
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
