//! `shop@1`: the name under which clients of an older version work with the database `shop` (SEMANTICS R34).
//!
//! It is such a name only while some collection of `shop` has versions. Else it is the name of a database like any other, since MongoDB
//! lets names have an `@`.

use crate::active::{Lenses, Rules};
use crate::rule::Lens;
use document::op::Namespace;
use document::{Code, Error, Result};
use std::sync::Arc;

/// A database and the version that its clients work with.
#[derive(Clone, Debug)]
pub(crate) struct Alias {
    /// What clients call it.
    name: Arc<str>,
    /// The database.
    pub(crate) db: Arc<str>,
    /// What stands behind the `@`, if that is a number that may be a version.
    number: Option<i32>,
    /// The newest version of any collection.
    newest: i32,
}

impl Rules {
    /// What a name of a database stands for; `None` if for itself.
    pub(crate) fn alias(&self, name: &str) -> Option<Alias> {
        let (db, number) = name.rsplit_once('@')?;
        let newest = self.lenses().newest_in(db)?;
        let said = number.parse::<i32>().ok().filter(|version| *version > 0 && version.to_string() == number);
        Some(Alias { name: name.into(), db: db.into(), number: said, newest })
    }
}

impl Alias {
    /// The version; an error if no collection has it.
    pub(crate) fn version(&self) -> Result<i32> {
        match self.number {
            Some(version) if version <= self.newest => Ok(version),
            _ => {
                let message = format!(
                    "'{}' is no version of database '{}': its collections have versions 1 to {}",
                    self.name, self.db, self.newest
                );
                let hint = format!("connect to '{}' for the newest, or to '{}@1' for the oldest", self.db, self.db);
                Err(Error::new(Code::InvalidNamespace, message).with_hint(hint))
            }
        }
    }

    /// The collection in the database.
    pub(crate) fn namespace(&self, ns: &Namespace) -> Namespace {
        Namespace { db: self.db.clone(), collection: ns.collection.clone() }
    }
}

impl Lenses {
    /// The newest version that a collection of the database has; `None` if none has versions.
    fn newest_in(&self, db: &str) -> Option<i32> {
        self.of.iter().filter(|(ns, _)| &*ns.db == db).map(|(_, lens)| lens.newest()).max()
    }

    /// What shows the collection's documents to clients of a version; `None` if they see the newest ones. Fails if the collection has
    /// no such version.
    pub(crate) fn at(&self, ns: &Namespace, version: i32) -> Result<Option<&Arc<Lens>>> {
        let Some(lens) = self.of(ns) else { return Ok(None) };
        if version > lens.newest() {
            let (db, newest) = (&ns.db, lens.newest());
            let message = format!("'{ns}' has versions 1 to {newest}, and '{db}@{version}' asks for version {version}");
            let hint = format!("connect to '{db}' for the newest of each collection");
            return Err(Error::new(Code::InvalidNamespace, message).with_hint(hint));
        }
        Ok(Some(lens).filter(|lens| lens.newest() > version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::State;

    fn rules() -> Rules {
        let text = "{ database: shop, collections: { users: { versions: { field: v, steps: [{ rename: { a: b } }, { rename: { b: c } }] } },
            posts: { versions: { field: v, steps: [{ rename: { a: b } }] } } } }";
        let declared = crate::declare::from_yaml("pleach.yaml", text).into_result().unwrap();
        Rules::new(declared.rules.into_iter().map(|rule| (Arc::new(rule), State::On).into()).collect(), None).unwrap()
    }

    #[test]
    fn names_stand_for_databases_that_have_versions() {
        let rules = rules();
        for (name, version) in [("shop@1", Some(1)), ("shop@2", Some(2)), ("shop@3", Some(3))] {
            let alias = rules.alias(name).unwrap();
            assert_eq!((&*alias.db, alias.version().ok()), ("shop", version), "{name}");
        }
        for name in ["shop@0", "shop@4", "shop@x", "shop@", "shop@01", "shop@+1", "shop@-1"] {
            let error = rules.alias(name).unwrap().version().unwrap_err();
            assert_eq!(error.code(), Code::InvalidNamespace, "{name}");
        }
        for name in ["shop", "other@1", "@1", "shop@1@1", "Shop@1"] {
            assert!(rules.alias(name).is_none(), "{name}");
        }
    }

    #[test]
    fn each_collection_has_its_own_versions() {
        let rules = rules();
        let at = |collection: &str, version: i32| {
            let found = rules.lenses().at(&Namespace::new("shop", collection), version);
            found.map(|lens| lens.is_some()).map_err(|error| error.code())
        };
        assert_eq!((at("users", 1), at("users", 2), at("users", 3)), (Ok(true), Ok(true), Ok(false)));
        assert_eq!((at("posts", 1), at("posts", 2)), (Ok(true), Ok(false)));
        assert_eq!(at("posts", 3), Err(Code::InvalidNamespace));
        assert_eq!(at("others", 3), Ok(false));
    }
}
