//! What topics are called: since Kafka 3 messages tell of them by ids, and a few by both.
//!
//! The trap: an id may be told of before the answer that names it, so a file is read twice where that
//! can be done.

use klamp_codec::render::Shown;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Names that are kept.
const MOST: usize = 100_000;
/// Kafka allows no longer one.
const LONGEST: usize = 249;

/// The names of topics by their ids.
#[derive(Clone, Debug, Default)]
pub(super) struct Topics(Rc<RefCell<HashMap<[u8; 16], String>>>);

impl Topics {
    /// The name of a topic, if it was told.
    pub(super) fn name(&self, id: &[u8; 16]) -> Option<String> {
        self.0.borrow().get(id).cloned()
    }

    fn learn(&self, id: [u8; 16], name: String) {
        let mut names = self.0.borrow_mut();
        if names.len() < MOST || names.contains_key(&id) {
            names.insert(id, name);
        }
    }
}

/// Looks for structs of a response that have both.
#[derive(Debug, Default)]
pub(super) struct Learner {
    scopes: Vec<(Option<[u8; 16]>, Option<String>)>,
}

impl Learner {
    pub(super) fn begin(&mut self) {
        self.scopes.push((None, None));
    }

    pub(super) fn element(&mut self) {
        if let Some(scope) = self.scopes.last_mut() {
            *scope = (None, None);
        }
    }

    pub(super) fn end(&mut self) {
        self.scopes.pop();
    }

    pub(super) fn value(&mut self, field: &str, value: Shown<'_>, topics: &Topics) {
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        match (field, value) {
            ("TopicId", Shown::Uuid(id)) if id != [0; 16] => scope.0 = Some(id),
            ("Name" | "TopicName" | "Topic", Shown::Text(name, _)) if name.len() <= LONGEST => {
                scope.1 = Some(String::from_utf8_lossy(name).into_owned());
            }
            _ => return,
        }
        if let (Some(id), Some(name)) = scope {
            topics.learn(*id, std::mem::take(name));
            *scope = (None, None);
        }
    }
}
