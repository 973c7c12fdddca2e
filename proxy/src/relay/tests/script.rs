//! A wire whose peer is a test: it gets what the test sends, as the test cuts it, and takes as much
//! as the test allows.

use super::super::Wire;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The end that the relay has.
pub(super) struct Scripted(Rc<RefCell<Script>>);

/// The end that the test has.
#[derive(Clone)]
pub(super) struct Peer(Rc<RefCell<Script>>);

#[derive(Default)]
struct Script {
    coming: VecDeque<Coming>,
    gone: Vec<u8>,
    /// How many bytes may still be written.
    window: usize,
    /// What a write ends with instead of waiting for the window.
    write_error: Option<ErrorKind>,
    /// Written bytes stay in the wire until it is flushed.
    buffering: bool,
    unflushed: Vec<u8>,
    shut: bool,
    dropped: bool,
    reads: usize,
    looks: usize,
    writes: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

enum Coming {
    Bytes(Vec<u8>),
    End,
    Error(ErrorKind),
}

/// A wire and its peer; the window is open as far as it goes.
pub(super) fn scripted() -> (Scripted, Peer) {
    let script = Rc::new(RefCell::new(Script {
        window: usize::MAX,
        ..Script::default()
    }));
    (Scripted(script.clone()), Peer(script))
}

impl Peer {
    /// Each call is (at least) one read of the relay.
    pub(super) fn send(&self, bytes: &[u8]) {
        self.come(Coming::Bytes(bytes.to_vec()));
    }

    pub(super) fn end(&self) {
        self.come(Coming::End);
    }

    pub(super) fn fail_reads(&self, kind: ErrorKind) {
        self.come(Coming::Error(kind));
    }

    pub(super) fn fail_writes(&self, kind: ErrorKind) {
        self.0.borrow_mut().write_error = Some(kind);
        self.wake_writer();
    }

    fn come(&self, coming: Coming) {
        let waker = {
            let mut script = self.0.borrow_mut();
            script.coming.push_back(coming);
            script.reader.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// So many bytes may be written from now on.
    pub(super) fn set_window(&self, bytes: usize) {
        self.0.borrow_mut().window = bytes;
        self.wake_writer();
    }

    pub(super) fn buffer_writes(&self) {
        self.0.borrow_mut().buffering = true;
    }

    fn wake_writer(&self) {
        let waker = self.0.borrow_mut().writer.take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// What has arrived since the last call.
    pub(super) fn received(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.borrow_mut().gone)
    }

    /// How many reads found bytes or an end, and how many writes took bytes.
    pub(super) fn calls(&self) -> (usize, usize) {
        let script = self.0.borrow();
        (script.reads, script.writes)
    }

    /// How many reads there were, those that found nothing included.
    pub(super) fn looks(&self) -> usize {
        self.0.borrow().looks
    }

    /// How many things sent are not read yet.
    pub(super) fn unread(&self) -> usize {
        self.0.borrow().coming.len()
    }

    pub(super) fn is_shut(&self) -> bool {
        self.0.borrow().shut
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.0.borrow().dropped
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.0.borrow_mut().dropped = true;
    }
}

impl Wire for Scripted {}

impl AsyncRead for Scripted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let script = &mut *self.0.borrow_mut();
        assert!(
            into.remaining() > 0,
            "a read without room looks like an end"
        );
        script.looks += 1;
        match script.coming.front_mut() {
            None => {
                script.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Some(Coming::Bytes(bytes)) => {
                let n = bytes.len().min(into.remaining());
                into.put_slice(&bytes[..n]);
                bytes.drain(..n);
                if bytes.is_empty() {
                    script.coming.pop_front();
                }
            }
            Some(Coming::End) => {}
            Some(Coming::Error(kind)) => return Poll::Ready(Err((*kind).into())),
        }
        script.reads += 1;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let script = &mut *self.0.borrow_mut();
        assert!(!script.shut, "a write after the end");
        if let Some(kind) = script.write_error {
            return Poll::Ready(Err(kind.into()));
        }
        let n = bytes.len().min(script.window);
        if n == 0 {
            script.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        script.window -= n;
        script.writes += 1;
        let to = if script.buffering {
            &mut script.unflushed
        } else {
            &mut script.gone
        };
        to.extend_from_slice(&bytes[..n]);
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let script = &mut *self.0.borrow_mut();
        script.gone.append(&mut script.unflushed);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().shut = true;
        Poll::Ready(Ok(()))
    }
}
