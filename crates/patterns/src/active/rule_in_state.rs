//! A rule and where it is in its life: what the rules in force are made of.

use crate::rule::shape::{Place, Shape};
use crate::rule::{Rule, State};
use std::sync::Arc;

/// One rule as it is to be enforced.
#[derive(Clone, Debug)]
pub struct RuleInState {
    pub rule: Arc<Rule>,
    pub state: State,
    /// Where the documents of its collection are, if they are stored in another form: new ones go to the first. None while the
    /// collection is still stored as it is.
    pub places: Vec<Place>,
    /// Its collections are being renamed: commands on them wait.
    pub switching: bool,
    /// Its hosts are getting back what they had: clients leave the field alone until that is done.
    pub restoring: bool,
    /// The items of an array are about to become documents: the array is left as it is until then.
    pub lifting: bool,
    /// Which change of the catalog it is from; 0 if from none.
    pub epoch: i64,
}

impl From<(Arc<Rule>, State)> for RuleInState {
    /// A shape that is on has one place: the declared one.
    fn from((rule, state): (Arc<Rule>, State)) -> RuleInState {
        let shape = rule.shape().filter(|_| state == State::On);
        let place = |shape: &Arc<dyn Shape>| Place {
            stored: shape.declared_place().unwrap_or(&rule.host).clone(),
            shape: shape.clone(),
        };
        let places = shape.map(place).into_iter().collect();
        RuleInState { rule, state, places, switching: false, restoring: false, lifting: false, epoch: 0 }
    }
}
