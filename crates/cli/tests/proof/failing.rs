//! A gate that fails, or is never left again, at one step of a plan.

use document::backend::Answer;
use document::{Code, Error};
use parking_lot::Mutex;
use patterns::gate::{Gate, Point};
use tokio::sync::Notify;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The step answers with an error that nobody may try again.
    Error,
    /// The step is never taken: whoever runs the plan is gone.
    Gone,
}

#[derive(Default)]
pub(crate) struct Failing {
    /// How many steps still go well.
    armed: Mutex<Option<(usize, Fault)>>,
    pub(crate) stuck: Notify,
}

impl Failing {
    pub(crate) fn arm(&self, after: usize, fault: Fault) {
        *self.armed.lock() = Some((after, fault));
    }

    /// Whether it has not struck yet; it will not any more.
    pub(crate) fn disarm(&self) -> bool {
        self.armed.lock().take().is_some()
    }
}

impl Gate for Failing {
    fn pass<'a>(&'a self, _point: Point<'a>) -> Answer<'a, ()> {
        Box::pin(async move {
            let fault = {
                let mut armed = self.armed.lock();
                match &mut *armed {
                    Some((0, fault)) => {
                        let fault = *fault;
                        *armed = None;
                        Some(fault)
                    }
                    Some((left, _)) => {
                        *left -= 1;
                        None
                    }
                    None => None,
                }
            };
            match fault {
                None => Ok(()),
                Some(Fault::Error) => Err(Error::new(Code::InternalError, "a fault on purpose")),
                Some(Fault::Gone) => {
                    self.stuck.notify_one();
                    std::future::pending().await
                }
            }
        })
    }
}
