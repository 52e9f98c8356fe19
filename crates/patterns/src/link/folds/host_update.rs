//! One update of a host for everything that some changes mean for it (SEMANTICS R31).

use super::amount::Amount;
use super::tally::TallyProgram;
use document::Result;
use document::update::Update;
use std::sync::Arc;

/// The amounts of several rules for one host.
#[derive(Clone, Debug, Default)]
pub struct HostUpdate {
    amounts: Vec<(Arc<TallyProgram>, Amount)>,
}

impl HostUpdate {
    pub fn new() -> HostUpdate {
        HostUpdate::default()
    }

    pub fn add(&mut self, program: &Arc<TallyProgram>, amount: &Amount) -> Result<()> {
        match self.amounts.iter_mut().find(|(other, _)| Arc::ptr_eq(other, program)) {
            Some((_, sum)) => *sum = sum.plus(amount, program.name())?,
            None => self.amounts.push((Arc::clone(program), *amount)),
        }
        Ok(())
    }

    /// Whether nothing changes: changes that cancel each other out.
    pub fn is_zero(&self) -> bool {
        self.amounts.iter().all(|(_, amount)| amount.is_zero())
    }

    /// The rules that change something.
    pub fn programs(&self) -> impl Iterator<Item = &Arc<TallyProgram>> {
        self.amounts.iter().filter(|(_, amount)| !amount.is_zero()).map(|(program, _)| program)
    }

    /// Nothing if nothing changes. A plain `$inc` while there are only counts, else one pipeline.
    pub fn into_update(self) -> Result<Option<Update>> {
        Err(document::Error::not_implemented("this"))
    }
}
