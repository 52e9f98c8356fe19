//! What a changed child means for the keys that it is linked by, and was linked by before.

use super::{ChildChange, Fold, FoldField};
use crate::rule::{Delta, Effect, Effects, Field, key};
use document::op::Change;
use document::value::order;
use document::{Doc, Env, Result, Value};

impl<F: Fold> FoldField<F> {
    /// See [`Field::react`].
    pub(super) fn reaction(&self, change: &Change, env: &Env, effects: &mut Effects) -> Result<()> {
        let after = change.after.as_ref();
        let now = after.map(|after| self.keys_of_child(after, env, true)).transpose()?.unwrap_or_default();
        let before = change.before.as_ref();
        let mut left = before.map(|before| self.keys_of_child(before, env, false)).transpose()?.unwrap_or_default();
        for key in now {
            let earlier = left.iter().position(|other| order::equal(other, &key));
            let before = earlier.and_then(|at| {
                left.swap_remove(at);
                before
            });
            self.react_for(key, &ChildChange { id: &change.id, before, after, form: self.form }, effects)?;
        }
        for key in left {
            self.react_for(key, &ChildChange { id: &change.id, before, after: None, form: self.form }, effects)?;
        }
        Ok(())
    }

    /// See [`Field::contribution`].
    pub(super) fn addition(&self, source: &Doc<'_>, env: &Env) -> Result<Effects> {
        let mut effects = Effects::new();
        let (id, after) = (source.get("_id").unwrap_or(Value::Missing), Some(source));
        for key in self.keys_of_child(source, env, false)? {
            self.react_for(key, &ChildChange { id: &id, before: None, after, form: self.form }, &mut effects)?;
        }
        // Nothing is read for what is only added.
        for (_, effect) in &mut effects {
            *effect = match std::mem::replace(effect, Effect::Nothing) {
                Effect::Look(delta) => Effect::Update(delta),
                Effect::Ask(inquiry) if inquiry.about.is_missing() => Effect::Update(inquiry.delta),
                other => other,
            };
        }
        Ok(effects)
    }

    /// The keys among whose children a document is. With `refusing`, an array that links nothing is an error.
    pub(super) fn keys_of_child(&self, child: &Doc<'_>, env: &Env, refusing: bool) -> Result<key::Values> {
        let linked = self.link.source_keys(child, env);
        if linked.refused && refusing {
            return Err(key::refused(self, &self.link.foreign));
        }
        match &self.link.filter {
            Some(filter) if !linked.values.is_empty() && !filter.matches(child, env)? => Ok(key::Values::new()),
            _ => Ok(linked.values),
        }
    }

    fn react_for(&self, key: Value<'static>, change: &ChildChange<'_>, effects: &mut Effects) -> Result<()> {
        let mut update: Option<Delta> = None;
        for effect in self.fold.react(change) {
            match (effect, update.take()) {
                (Effect::Update(delta), None) => update = Some(delta),
                (Effect::Update(delta), Some(sum)) => update = Some(self.combine(sum, &delta)?),
                (other, sum) => {
                    update = sum;
                    effects.push((key.clone(), other));
                }
            }
        }
        effects.extend(update.filter(|delta| !delta.is_zero()).map(|delta| (key, Effect::Update(delta))));
        Ok(())
    }
}
