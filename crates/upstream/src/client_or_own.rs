//! Whose line a command goes over: the client's own, or one of ours for background work.

use crate::line::Line;
use crate::shared::{Lent, Shared};
use document::backend::{Relay, Session};
use std::sync::Arc;

/// The line of a command; derefs to it.
#[derive(Clone)]
pub(crate) enum ClientOrOwn {
    Client(Arc<Line>),
    Own(Arc<Lent>),
}

impl ClientOrOwn {
    pub(crate) fn of(shared: &Arc<Shared>, session: &Session) -> ClientOrOwn {
        ClientOrOwn::of_relay(shared, session.relay.as_ref())
    }

    pub(crate) fn of_relay(shared: &Arc<Shared>, relay: Option<&Arc<dyn Relay>>) -> ClientOrOwn {
        match relay.cloned().map(|relay| relay.as_any().downcast::<Line>()) {
            Some(Ok(line)) => ClientOrOwn::Client(line),
            _ => ClientOrOwn::Own(Arc::new(shared.lend())),
        }
    }
}

impl std::ops::Deref for ClientOrOwn {
    type Target = Line;

    fn deref(&self) -> &Line {
        match self {
            ClientOrOwn::Client(line) => line,
            ClientOrOwn::Own(line) => line,
        }
    }
}
