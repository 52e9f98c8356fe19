//! What rules can be combined on one collection (SEMANTICS R34). A collection that is stored in another form may be the source of
//! fields, but not their host; and no rule looks where it is stored.

use crate::rule::Rule;
use document::op::Namespace;

/// What is wrong with two rules, said about the first of them.
pub(crate) struct Clash {
    /// The key of its block that is to be changed.
    pub(crate) key: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// Whether one of them is about a whole collection.
pub(crate) fn concerns(rule: &Rule, other: &Rule) -> bool {
    [rule, other].iter().any(|rule| rule.shape().is_some())
}

/// Why two rules do not go together, one of them being about a whole collection.
pub(crate) fn clash(rule: &Rule, other: &Rule) -> Option<Clash> {
    let theirs = namespaces(other);
    for (key, namespace) in namespaces(rule) {
        let Some((their_key, _)) = theirs.iter().find(|(_, theirs)| *theirs == namespace) else { continue };
        let collection = &namespace.collection;
        let (what, hint) = match (key, *their_key) {
            ("into", "into") => ("both rules store their buckets in", "give each its own `into`"),
            ("into", _) => ("the other rule is about", "store the buckets under a name of their own: `into`"),
            (_, "into") => {
                ("the other rule stores its buckets in", "name the collection of the readings, or change its `into`")
            }
            // Fields are kept from logical documents, whatever they are stored in.
            ("from", "") | ("", "from") => continue,
            _ if [rule, other].iter().any(|rule| rule.constraint().is_some()) => (
                "a reading is no document of its own to MongoDB, so no rule can say what it must be like:",
                "constrain another collection, or bucket a collection of its own",
            ),
            _ => (
                "a reading is no document of its own to MongoDB, so no rule can keep a field in it:",
                "keep the field in another collection, or bucket a collection of its own",
            ),
        };
        return Some(Clash {
            key,
            message: format!("`{}` does not go together with `{}`: {what} `{collection}`", rule.name, other.name),
            hint: hint.to_owned(),
        });
    }
    None
}

/// The collections that a rule is about, each with the key that names it.
pub(crate) fn namespaces(rule: &Rule) -> Vec<(&'static str, &Namespace)> {
    let mut all = vec![("", &rule.host)];
    all.extend(rule.link().map(|link| ("from", &link.source)));
    all.extend(rule.shape().and_then(|shape| Some(("into", shape.declared_place()?))));
    all
}
