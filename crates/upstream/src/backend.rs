//! The backend's contract, kept by commands to a real MongoDB.

use crate::line::Line;
use crate::upstream::Upstream;
use document::backend::{Abilities, Answer, Backend, Cursor, FenceKey, Head, Mode, Relay, Session};
use document::op::{AdminOp, Capture, Context, Explained, ReadOp, Verbosity, WriteOp, Written};
use document::{Doc, Error};
use std::sync::Arc;

impl Backend for Upstream {
    fn abilities(&self) -> Abilities {
        Abilities { forwards: true }
    }

    fn connect(&self) -> Option<Arc<dyn Relay>> {
        Some(Arc::new(Line::new(self.shared.clone(), true)))
    }

    fn passes(&self, _: &Head<'_>) -> bool {
        true
    }

    fn begin<'a>(&'a self, _: &'a mut Session, _: &'a Context) -> Answer<'a, ()> {
        not_yet()
    }

    fn read<'a>(&'a self, _: &'a mut Session, _: &'a Context, _: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        not_yet()
    }

    fn write<'a>(&'a self, _: &'a mut Session, _: &'a Context, _: &'a WriteOp, _: &'a Capture) -> Answer<'a, Written> {
        not_yet()
    }

    fn fence<'a>(&'a self, _: &'a mut Session, _: &'a FenceKey, _: Mode) -> Answer<'a, ()> {
        not_yet()
    }

    fn explain<'a>(
        &'a self,
        _: &'a mut Session,
        _: &'a Context,
        _: Explained,
        _: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        not_yet()
    }

    fn admin<'a>(&'a self, _: &'a mut Session, _: &'a Context, _: AdminOp) -> Answer<'a, Vec<Doc<'static>>> {
        not_yet()
    }

    fn cluster_time(&self) -> u64 {
        self.shared.time.operation()
    }

    fn gossip(&self) -> Option<Doc<'static>> {
        self.shared.time.gossip()
    }
}

fn not_yet<'a, T: Send + 'a>() -> Answer<'a, T> {
    Box::pin(std::future::ready(Err(Error::not_implemented("this"))))
}
