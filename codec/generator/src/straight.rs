//! Writes readers in a straight line for the commonest messages: Produce and Fetch, in all versions.
//!
//! A reader is made of the same ops as the table has for the message, so that it can hand over to whoever
//! reads by the table wherever it stops; it stops at ops that have no counterpart there.

use crate::compile::{Op, Run, Table};
use crate::message::{Direction, Scalar};
use crate::pack::Packed;
use crate::write::{form, head};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Produce and Fetch.
const API_KEYS: [i16; 2] = [0, 1];

/// The readers, as Rust.
pub(crate) fn readers(hot: &Table) -> String {
    let mut text = head("Readers of the commonest messages by the hot table, in straight lines.");
    text += "\nuse crate::layout::table::Length::*;\nuse crate::layout::Role::*;\n";
    text += "use crate::layout::{Level, Listener, MAX_DEPTH, Plain, Read, Straight};\nuse crate::layout::{elements as read_elements, message};\n";
    let mut structs = BTreeSet::new();
    for direction in [Direction::Request, Direction::Response] {
        let messages = messages(hot, direction);
        dispatch(&mut text, direction, &messages);
        for first in messages {
            reach(hot, first, &mut structs);
        }
    }
    elements(&mut text, hot, &structs);
    for first in structs {
        reader(&mut text, hot, first);
    }
    text
}

/// The first ops of all messages that have readers.
fn messages(hot: &Table, direction: Direction) -> BTreeSet<u16> {
    let apis = API_KEYS.iter().filter_map(|key| hot.apis.get(key));
    apis.flat_map(|api| api.first_ops[direction as usize].iter().copied())
        .collect()
}

/// The function that knows which messages have readers.
fn dispatch(text: &mut String, direction: Direction, messages: &BTreeSet<u16>) {
    let name = match direction {
        Direction::Request => "request",
        Direction::Response => "response",
    };
    let _ = write!(
        text,
        "\n/// Reads the {name} whose first op this is, up to where its reader stops: `true` where that is its\n\
         /// end. `None` where it has none.\n\
         #[inline(always)]\n\
         pub(crate) fn {name}<L: Listener>(\n    \
         first: u16, at: &mut Plain<'_>, levels: &mut [Level; MAX_DEPTH], on: &mut L,\n\
         ) -> Option<bool> {{\n    Some(match first {{\n"
    );
    for first in messages {
        let _ = writeln!(
            text,
            "        {first} => message::<S{first}, L>(at, levels, on),"
        );
    }
    *text += "        _ => return None,\n    })\n}\n";
}

/// The function that knows which elements have readers: those of arrays at which the table's reader stops
/// to look for one.
fn elements(text: &mut String, hot: &Table, structs: &BTreeSet<u16>) {
    *text += "\n/// Reads the elements whose first op this is, up to where their reader stops: `true` where that is the\n\
         /// last one's end. `None` where they have none.\n\
         #[inline(always)]\n\
         pub(crate) fn elements<L: Listener>(\n    \
         first: u16, at: &mut Plain<'_>, levels: &mut [Level; MAX_DEPTH], on: &mut L,\n\
         ) -> Option<bool> {\n    Some(match first {\n";
    for first in structs {
        let ops = &run(hot, *first).ops;
        if matches!(ops.first().map(|it| &it.op), Some(Op::Row(_))) {
            let _ = writeln!(
                text,
                "        {first} => read_elements::<S{first}, L>(at, levels, on),"
            );
        }
    }
    *text += "        _ => return None,\n    })\n}\n";
}

/// Adds the struct with this first op and those of the elements in it.
fn reach(hot: &Table, first: u16, structs: &mut BTreeSet<u16>) {
    if structs.insert(first) {
        for packed in &run(hot, first).ops {
            if let Op::Array {
                role: None,
                element,
                ..
            } = packed.op
            {
                reach(hot, element, structs);
            }
        }
    }
}

fn run(hot: &Table, first: u16) -> &Run {
    let run = hot.runs.iter().find(|run| run.first == first);
    run.expect("an op names a run")
}

/// The reader of a struct.
fn reader(text: &mut String, hot: &Table, first: u16) {
    let run = run(hot, first);
    let calls = (first..).zip(&run.ops).filter_map(|(op, it)| call(op, it));
    let calls: Vec<_> = calls.collect();
    let _ = write!(
        text,
        "\n/// {}\nstruct S{first};\n\nimpl Read for S{first} {{\n    #[inline(always)]\n    \
         fn read<L: Listener>(r: &mut Straight<'_, '_, L>) -> Option<()> {{\n        {}\n    }}\n}}\n",
        run.path,
        calls.join("?;\n        ")
    );
}

/// The call that reads an op with this number; `None` where there is nothing to read.
fn call(op: u16, packed: &Packed) -> Option<String> {
    let before = packed.before;
    Some(match packed.op {
        Op::Int(role, Scalar::Int16) => format!("r.int16({op}, {before}, {role:?})"),
        Op::Int(role, Scalar::Int32) => format!("r.int32({op}, {before}, {role:?})"),
        Op::Uuid(role) => format!("r.uuid({op}, {before}, {role:?})"),
        Op::Bytes {
            role,
            length,
            nullable,
        } => {
            let form = form(length, nullable);
            match role {
                Some(role) => format!("r.bytes({op}, {before}, {role:?}, {form})"),
                None => format!("r.unread({op}, {before}, {form}, 1)"),
            }
        }
        Op::Skipped {
            role,
            length,
            nullable,
        } => {
            let form = form(length, nullable);
            format!("r.skipped({op}, {before}, {role:?}, {form})")
        }
        Op::FixedArray {
            length,
            nullable,
            size,
        } => format!(
            "r.unread({op}, {before}, {}, {size})",
            form(length, nullable)
        ),
        Op::Array {
            role: None,
            length,
            nullable,
            element,
            min,
        } => {
            let form = form(length, nullable);
            format!("r.array::<S{element}>({op}, {before}, {form}, ({element}, {min}))")
        }
        Op::Tags { .. } => format!("r.tags({op}, {before})"),
        Op::Row(_) => return None,
        Op::End if before == 0 => "Some(())".to_owned(),
        Op::End => format!("r.end({op}, {before})"),
        _ => format!("r.stop({op})"),
    })
}
