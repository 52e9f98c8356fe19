//! What an update does, as a tree of paths: built once, with MongoDB's rules about paths that get in each other's way.

use super::operation::Operation;
use super::path::{self, Step};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::value::Path;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) enum Node {
    Operation(Arc<dyn Operation>),
    /// The target of a `$rename`, with its source.
    Rename(Arc<Path>),
    /// The source of a `$rename`: no other operator may touch it.
    Reserved,
    Branch(Branch),
    /// `$[]` and `$[id]`: array filters (by place in their list) and what they lead to.
    Elements(Vec<(Option<usize>, Node)>),
}

/// A step and what it leads to.
pub(super) type Child = (Arc<str>, Node);

/// Named children in the order of application, and what the positional `$` leads to.
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    pub(super) children: Vec<Child>,
    pub(super) positional: Option<Box<Node>>,
}

impl Branch {
    /// Puts `leaf` at the end of `steps`; `dotted` is the same path for messages.
    pub(super) fn insert(&mut self, dotted: &str, steps: &[Step], leaf: Node) -> Result<()> {
        let conflict = |length: usize| {
            let at: Vec<&str> = dotted.split('.').take(length).collect();
            Error::new(
                Code::ConflictingUpdateOperators,
                format!("Updating the path '{dotted}' would create a conflict at '{}'", at.join(".")),
            )
        };
        let Some((last, way)) = steps.split_last() else { return Ok(()) };
        let mut branch = Slot::Branch(self);
        for (depth, step) in way.iter().enumerate() {
            let next_is_elements = matches!(steps.get(depth + 1), Some(Step::Elements(_) | Step::Unknown(_)));
            let child = branch.child(step, || {
                if next_is_elements { Node::Elements(Vec::new()) } else { Node::Branch(Branch::default()) }
            });
            branch = match child {
                Node::Branch(inner) if !next_is_elements => Slot::Branch(inner),
                Node::Elements(list) if next_is_elements => Slot::Elements(list),
                _ => return Err(conflict(depth + 1)),
            };
            if let Some(Step::Unknown(id)) = steps.get(depth + 1) {
                return Err(Error::bad_value(format!(
                    "No array filter found for identifier '{id}' in path '{dotted}'"
                )));
            }
        }
        let mut leaf = Some(leaf);
        let child = branch.child(last, || leaf.take().unwrap_or(Node::Reserved));
        match leaf {
            None => Ok(()),
            Some(_) => {
                let _ = child;
                Err(conflict(steps.len()))
            }
        }
    }

    /// The children when `$` stands for this index.
    pub(super) fn with_position(&self, index: usize, path: &str) -> Result<Vec<Child>> {
        let mut children = self.children.clone();
        if let Some(positional) = &self.positional {
            let name: Arc<str> = index.to_string().into();
            match children.iter_mut().find(|(other, _)| *other == name) {
                Some((_, node)) => *node = merge(node, positional, &join(path, &name))?,
                None => children.push((name, (**positional).clone())),
            }
            children.sort_by(|a, b| path::compare(&a.0, &b.0));
        }
        Ok(children)
    }
}

/// Where a step is looked up.
enum Slot<'t> {
    Branch(&'t mut Branch),
    Elements(&'t mut Vec<(Option<usize>, Node)>),
}

impl<'t> Slot<'t> {
    fn child(self, step: &Step, make: impl FnOnce() -> Node) -> &'t mut Node {
        match (self, step) {
            (Slot::Branch(branch), Step::Name(name)) => {
                let found = branch.children.binary_search_by(|(other, _)| path::compare(other, name));
                let place = found.unwrap_or_else(|place| {
                    branch.children.insert(place, (name.clone(), make()));
                    place
                });
                &mut branch.children.get_mut(place).expect("found or just inserted there").1
            }
            (Slot::Branch(branch), _) => branch.positional.get_or_insert_with(|| Box::new(make())),
            (Slot::Elements(list), step) => {
                let id = if let Step::Elements(id) = step { *id } else { None };
                let place = list.iter().position(|(other, _)| *other == id).unwrap_or_else(|| {
                    list.push((id, make()));
                    list.len() - 1
                });
                &mut list.get_mut(place).expect("found or just pushed there").1
            }
        }
    }
}

/// Both nodes at once, where a document brings two paths together; `path` is where.
pub(super) fn merge(left: &Node, right: &Node, path: &str) -> Result<Node> {
    let conflict = || Error::new(Code::ConflictingUpdateOperators, format!("Update created a conflict at '{path}'"));
    match (left, right) {
        (Node::Branch(a), Node::Branch(b)) => {
            let mut both = a.clone();
            for (name, node) in &b.children {
                match both.children.iter_mut().find(|(other, _)| other == name) {
                    Some((_, own)) => *own = merge(own, node, &join(path, name))?,
                    None => both.children.push((name.clone(), node.clone())),
                }
            }
            both.children.sort_by(|a, b| path::compare(&a.0, &b.0));
            both.positional = match (&a.positional, &b.positional) {
                (Some(a), Some(b)) => Some(Box::new(merge(a, b, &join(path, "$"))?)),
                (a, b) => a.clone().or_else(|| b.clone()),
            };
            Ok(Node::Branch(both))
        }
        (Node::Elements(a), Node::Elements(b)) => {
            let mut both = a.clone();
            for (id, node) in b {
                match both.iter_mut().find(|(other, _)| other == id) {
                    Some((_, own)) => *own = merge(own, node, &join(path, "$[]"))?,
                    None => both.push((*id, node.clone())),
                }
            }
            Ok(Node::Elements(both))
        }
        _ => Err(conflict()),
    }
}

pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
