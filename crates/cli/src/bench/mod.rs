//! What `pleach bench` measures, one folder per measurement.

pub(crate) mod case_study;
