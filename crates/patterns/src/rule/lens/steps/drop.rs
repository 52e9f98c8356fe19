//! `drop: [fax]`: a field that newer documents do not have.

use super::{ChangedPaths, Conversion, Origin, VersionStep, unknown_among};
use crate::rule::lens::edits::{Edits, is_present};
use document::value::Path;

#[derive(Clone, Debug)]
pub struct Drop {
    pub path: Path,
}

impl VersionStep for Drop {
    fn up(&self) -> Conversion {
        Conversion::one(Edits::when(is_present(&self.path.dotted())).unset(&self.path))
    }

    /// It is gone.
    fn down(&self) -> Conversion {
        Conversion::none()
    }

    fn changed(&self) -> ChangedPaths {
        ChangedPaths::Paths(vec![self.path.clone()])
    }

    fn origin(&self, path: &Path) -> Origin {
        unknown_among(path, std::slice::from_ref(&self.path))
    }

    /// What newer documents have there all the same is seen.
    fn destination(&self, _: &Path) -> Origin {
        Origin::Same
    }

    fn losses(&self) -> Vec<String> {
        vec![format!("`{}` is gone for every version once its document is stored in a newer one", self.path)]
    }
}
