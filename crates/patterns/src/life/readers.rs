//! Cursors that clients have open between two batches: before a collection is taken away, those on it are given a little time.

use document::op::Namespace;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

#[derive(Default)]
pub(crate) struct Readers {
    open: Mutex<Vec<(Box<str>, Weak<()>)>>,
}

impl Readers {
    /// Counts while what it gives is held.
    pub(crate) fn add(&self, namespace: &str) -> Arc<()> {
        let reader = Arc::new(());
        let mut open = self.open.lock();
        if open.len() == open.capacity() {
            open.retain(|(_, reader)| reader.strong_count() > 0);
        }
        open.push((namespace.into(), Arc::downgrade(&reader)));
        reader
    }

    /// Those that are open on these namespaces now.
    pub(crate) fn of(&self, namespaces: &[Namespace]) -> Vec<Weak<()>> {
        let names: Vec<String> = namespaces.iter().map(Namespace::to_string).collect();
        let open = self.open.lock();
        let is_meant = |(name, _): &&(Box<str>, Weak<()>)| names.iter().any(|other| **other == **name);
        open.iter().filter(is_meant).map(|(_, reader)| reader.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_counts_until_it_is_dropped() {
        let readers = Readers::default();
        let (here, there) = (Namespace::new("d", "here"), Namespace::new("d", "there"));
        let one = readers.add("d.here");
        for _ in 0..100 {
            readers.add("d.there");
        }
        let alive =
            |namespaces: &[Namespace]| readers.of(namespaces).iter().filter(|reader| reader.strong_count() > 0).count();
        assert_eq!((alive(&[here.clone(), there.clone()]), alive(&[there])), (1, 0));
        drop(one);
        assert_eq!(alive(&[here]), 0);
        assert!(readers.open.lock().len() <= 101);
    }
}
