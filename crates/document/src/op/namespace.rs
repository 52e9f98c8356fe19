//! The name of a collection.

use std::sync::Arc;

/// A database and a collection in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    pub db: Arc<str>,
    pub collection: Arc<str>,
}

impl Namespace {
    pub fn new(db: &str, collection: &str) -> Namespace {
        Namespace { db: db.into(), collection: collection.into() }
    }

    pub fn by_ref(&self) -> NamespaceRef<'_> {
        NamespaceRef { db: &self.db, collection: &self.collection }
    }
}

impl std::fmt::Display for Namespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.db, self.collection)
    }
}

/// A borrowed namespace. It finds its entry in a map by [`Namespace`], so that a look-up allocates nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NamespaceRef<'a> {
    pub db: &'a str,
    pub collection: &'a str,
}

impl hashbrown::Equivalent<Namespace> for NamespaceRef<'_> {
    fn equivalent(&self, key: &Namespace) -> bool {
        *self == key.by_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_borrowed_name_finds_its_entry() {
        let mut map = hashbrown::HashMap::new();
        map.insert(Namespace::new("shop", "orders"), 1);
        map.insert(Namespace::new("shopo", "rders"), 2);
        assert_eq!(map.get(&NamespaceRef { db: "shop", collection: "orders" }), Some(&1));
        assert_eq!(map.get(&NamespaceRef { db: "shop", collection: "order" }), None);
    }
}
