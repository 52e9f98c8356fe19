//! One file per verb of the command line.

pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod check;
mod compared;
pub(crate) mod drop;
pub(crate) mod explain;
pub(crate) mod forget;
pub(crate) mod patterns;
pub(crate) mod plan;
pub(crate) mod repair;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod uninstall;
