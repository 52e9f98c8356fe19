//! The moment that an open cursor reads at: set while a batch is made, empty between batches, so that no snapshot is kept.

use crate::transaction::write_set::Moment;
use document::traffic::Examined;
use document::{Code, Env, Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;

type Interrupt = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// Shared by all streams of a cursor.
#[derive(Clone, Default)]
pub(crate) struct Present(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    moment: Option<Moment>,
    interrupt: Option<Interrupt>,
    examined: Option<Arc<Examined>>,
}

impl Present {
    /// Begins a batch.
    pub(crate) fn begin(&self, moment: Moment, env: &Env) {
        *self.0.lock() =
            State { moment: Some(moment), interrupt: Some(env.interrupt.clone()), examined: env.examined.clone() };
    }

    /// Ends it: lets go of the snapshot.
    pub(crate) fn end(&self) {
        *self.0.lock() = State::default();
    }

    pub(crate) fn moment(&self) -> Result<Moment> {
        let between = || Error::new(Code::InternalError, "a cursor was read between two batches");
        self.0.lock().moment.clone().ok_or_else(between)
    }

    /// Where the command that asked for this batch counts what is looked at.
    pub(crate) fn examined(&self) -> Option<Arc<Examined>> {
        self.0.lock().examined.clone()
    }

    /// `env` for work that outlives a batch: it is interrupted with the command that asked for the current one.
    pub(crate) fn env(&self, env: &Env) -> Env {
        let state = self.0.clone();
        let interrupt: Interrupt = Arc::new(move || {
            let interrupt = state.lock().interrupt.clone();
            interrupt.map_or(Ok(()), |interrupt| interrupt())
        });
        Env { interrupt, ..env.clone() }
    }
}
