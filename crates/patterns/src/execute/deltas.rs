//! What changed children mean for the keys of one field: their effects as one per key, and what becomes of it while the rule is
//! being seeded (SEMANTICS R2). What is left is written, looked at or asked about once for all fields of the level.

use crate::active::ActiveRule;
use crate::execute::attempt::Attempt;
use crate::execute::evaluate::is_shown_by_state;
use crate::execute::host_queue;
use crate::execute::host_updates::HostUpdates;
use crate::execute::inquire::Inquiries;
use crate::execute::key_inquiries::KeyInquiries;
use crate::execute::look::Looks;
use crate::execute::{deferred, jobs};
use crate::rule::{Delta, Effect, Effects, Field, Link, State, key};
use document::{Code, Error, Result, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// What follows from the changes for the hosts of a level.
#[derive(Default)]
pub(super) struct Following {
    pub(super) updates: HostUpdates,
    looks: Looks,
    inquiries: Inquiries,
}

/// The effects on one key as one.
struct KeyEffect {
    key: Value<'static>,
    /// What is known without a question …
    delta: Option<Delta>,
    /// … and whether it depends on what the hosts hold.
    looks: bool,
    /// One about the whole key, which has all deltas, or some about parts.
    inquiries: KeyInquiries,
}

impl Following {
    /// Adds the effects of one field.
    pub(super) async fn add(
        &mut self,
        attempt: &mut Attempt<'_>,
        (kept, state): (&Arc<ActiveRule>, &State),
        field: &Arc<dyn Field>,
        link: &Link,
        effects: Effects,
    ) -> Result<()> {
        for effect in by_key(&**field, effects)? {
            if effect.is_zero() || attempt.was_evaluated(kept, &effect.key) {
                continue;
            }
            if link.lag.is_some() {
                let action = deferred::JobAction::of_children(effect.children());
                jobs::enqueue(attempt, kept, &effect.key, action).await?;
            } else if link.create {
                self.add_gathered(attempt, (kept, state), field, effect)?;
            } else if kept.is_by_id() && !state.reached(&effect.key) {
                // Seeding comes to this host later (SEMANTICS R2).
                attempt.shared_later(kept, effect.key);
            } else {
                self.add_one(attempt, kept, field, effect)?;
            }
        }
        Ok(())
    }

    /// Of a roll-up. Until the whole source is counted, only the state says how far that is; then values that the state does not
    /// tell are evaluated by the walk over the hosts, against which a fence orders whoever changes their children.
    fn add_gathered(
        &mut self,
        attempt: &mut Attempt<'_>,
        (kept, state): (&Arc<ActiveRule>, &State),
        field: &Arc<dyn Field>,
        effect: KeyEffect,
    ) -> Result<()> {
        let is_gathering = matches!(state, State::Gathering { .. });
        if !is_gathering && (state.reached(&effect.key) || is_shown_by_state(&**field)?) {
            return self.add_one(attempt, kept, field, effect);
        }
        if !is_gathering {
            attempt.shared_later(kept, effect.key.clone());
        }
        let KeyEffect { key, delta, inquiries, .. } = effect;
        for delta in delta.into_iter().chain(inquiries.into_iter().map(|inquiry| inquiry.delta)) {
            let hidden = delta.hidden();
            if !hidden.is_zero() {
                self.updates.add(kept, field, key.clone(), hidden)?;
            }
        }
        Ok(())
    }

    fn add_one(
        &mut self,
        attempt: &mut Attempt<'_>,
        kept: &Arc<ActiveRule>,
        field: &Arc<dyn Field>,
        effect: KeyEffect,
    ) -> Result<()> {
        let KeyEffect { key, delta, mut looks, inquiries } = effect;
        if looks && attempt.leaves_to_stages && delta.as_ref().is_some_and(|delta| field.stages_decide(delta)) {
            looks = attempt.executor.undecided_hosts.contains(host_queue::hash(&kept.rule.host, &key::bytes(&key)));
        }
        if attempt.is_collecting() && (looks || !inquiries.is_empty()) {
            attempt.needs_answer = true;
            let message = format!("rule {} needs an answer in a plan that waits for none", kept.rule.name);
            return Err(Error::new(Code::InternalError, message));
        }
        for inquiry in inquiries {
            self.inquiries.add(kept, field, key.clone(), inquiry)?;
        }
        match delta.filter(|delta| !delta.is_zero()) {
            Some(delta) if looks => self.looks.add(kept, field, key, delta),
            Some(delta) => self.updates.add(kept, field, key, delta)?,
            None => {}
        }
        Ok(())
    }

    /// Reads what must be known before, and writes.
    pub(super) async fn write(self, attempt: &mut Attempt<'_>, changes: &mut super::changes::Changes) -> Result<()> {
        let Following { mut updates, looks, mut inquiries } = self;
        looks.decide(attempt, &mut updates, &mut inquiries).await?;
        inquiries.ask(attempt, &mut updates).await?;
        updates.write(attempt, changes).await
    }
}

impl KeyEffect {
    fn new(key: Value<'static>) -> KeyEffect {
        KeyEffect { key, delta: None, looks: false, inquiries: KeyInquiries::default() }
    }

    /// Whether the changes cancel each other out.
    fn is_zero(&self) -> bool {
        self.inquiries.is_empty() && self.delta.as_ref().is_none_or(Delta::is_zero)
    }

    /// How many children come to the host, or leave it, where they make and remove it.
    fn children(&self) -> i64 {
        let asked = self.inquiries.iter().map(|inquiry| &inquiry.delta);
        self.delta.iter().chain(asked).map(Delta::children).sum()
    }

    fn add(&mut self, field: &dyn Field, effect: Effect) -> Result<()> {
        match effect {
            Effect::Update(delta) => self.add_delta(field, delta),
            Effect::Look(delta) => {
                self.looks = true;
                self.add_delta(field, delta)
            }
            Effect::Ask(inquiry) => self.inquiries.add(field, inquiry),
            Effect::Nothing | Effect::Delete | Effect::Refuse => Ok(()),
        }
    }

    fn add_delta(&mut self, field: &dyn Field, delta: Delta) -> Result<()> {
        self.delta = Some(match self.delta.take() {
            Some(first) => field.combine(first, &delta)?,
            None => delta,
        });
        Ok(())
    }

    /// An inquiry about the whole key answers for everything else.
    fn settle(&mut self, field: &dyn Field) -> Result<()> {
        if let Some(whole) = self.inquiries.whole()
            && let Some(delta) = self.delta.take()
        {
            whole.delta = field.combine(delta, &whole.delta)?;
            self.looks = false;
        }
        Ok(())
    }
}

/// The effects of a field by key, in the order of their first ones.
fn by_key(field: &dyn Field, effects: Effects) -> Result<SmallVec<[KeyEffect; 2]>> {
    let mut list: SmallVec<[KeyEffect; 2]> = SmallVec::new();
    if effects.iter().all(|(_, effect)| matches!(effect, Effect::Update(_))) {
        // Updates of one key meet in the update of its host.
        for (key, effect) in effects {
            list.push(KeyEffect { delta: effect.into_delta(), ..KeyEffect::new(key) });
        }
        return Ok(list);
    }
    let mut places: HashMap<Vec<u8>, usize> = HashMap::with_capacity(effects.len());
    for (key, effect) in effects {
        let at = *places.entry(key::bytes(&key)).or_insert_with(|| {
            list.push(KeyEffect::new(key));
            list.len() - 1
        });
        if let Some(known) = list.get_mut(at) {
            known.add(field, effect)?;
        }
    }
    list.iter_mut().try_for_each(|effect| effect.settle(field))?;
    Ok(list)
}
