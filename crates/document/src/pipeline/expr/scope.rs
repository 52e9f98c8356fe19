//! What an evaluation can see, and the limits it must keep.

use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::Doc;
use crate::value::Value;

/// The largest value an expression may build. Stored documents are smaller; this bounds what a few operators can ask for.
const MAX_VALUE_BYTES: usize = 100 << 20;

/// The root document, the surroundings, and bound variables.
pub struct Scope<'a> {
    pub root: Doc<'a>,
    pub env: &'a Env,
    slots: Vec<Value<'a>>,
    steps: u32,
}

impl<'a> Scope<'a> {
    pub fn new(root: Doc<'a>, env: &'a Env) -> Scope<'a> {
        let slots = env.variables.iter().map(Value::borrow).collect();
        Scope { root, env, slots, steps: 0 }
    }

    pub fn set(&mut self, slot: usize, value: Value<'a>) {
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, Value::Missing);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
    }

    pub fn get(&self, slot: usize) -> Value<'a> {
        self.slots.get(slot).cloned().unwrap_or(Value::Missing)
    }

    /// Called once per turn of every loop whose length a client chooses, so that the work can be ended.
    pub fn step(&mut self) -> Result<()> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(1024) { (self.env.interrupt)() } else { Ok(()) }
    }

    /// Called with the size of what is being built.
    pub fn check_size(&self, bytes: usize) -> Result<()> {
        if bytes <= MAX_VALUE_BYTES {
            return Ok(());
        }
        Err(Error::new(
            Code::ExceededMemoryLimit,
            format!("An expression built a value of more than {MAX_VALUE_BYTES} bytes"),
        ))
    }
}
