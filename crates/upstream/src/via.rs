//! Whose line a command goes over: the client's own, or one of ours for background work.

use crate::line::Line;
use crate::shared::{Lent, Shared};
use document::backend::{Relay, Session};
use std::sync::Arc;

#[derive(Clone)]
pub(crate) enum Via {
    Client(Arc<Line>),
    Ours(Arc<Lent>),
}

impl Via {
    pub(crate) fn of(shared: &Arc<Shared>, session: &Session) -> Via {
        Via::line(shared, session.relay.as_ref())
    }

    pub(crate) fn line(shared: &Arc<Shared>, relay: Option<&Arc<dyn Relay>>) -> Via {
        match relay.cloned().map(|relay| relay.as_any().downcast::<Line>()) {
            Some(Ok(line)) => Via::Client(line),
            _ => Via::Ours(Arc::new(shared.lend())),
        }
    }
}

impl std::ops::Deref for Via {
    type Target = Line;

    fn deref(&self) -> &Line {
        match self {
            Via::Client(line) => line,
            Via::Ours(line) => line,
        }
    }
}
