//! Large frames from socket to socket: the bytes, the ends, the observations and the memory are those
//! of the path through buffers.

mod alike;
mod ends;
mod looks;
mod shares;

use super::{Random, framed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

/// Produce v3 without an answer; its records are `bytes` long.
pub(super) fn produce(id: i32, bytes: usize) -> Vec<u8> {
    let records = Random(id as u64 + 1).bytes(bytes);
    framed(&[
        &[0, 0, 0, 3],
        &id.to_be_bytes(),
        b"\0\x01c\xff\xff\0\0\0\0\0\x09\0\0\0\x01\0\x01t\0\0\0\x01\0\0\0\0",
        &(bytes as i32).to_be_bytes(),
        &records,
    ])
}

/// Fetch v4 of no partition.
pub(super) fn fetch(id: i32) -> Vec<u8> {
    let head: &[u8] = &[0, 1, 0, 4];
    framed(&[head, &id.to_be_bytes(), b"\0\x01c", &[255; 4], &[0; 17]])
}

/// An answer to it, with `partitions` partitions of `bytes` each, all with error 6.
pub(super) fn fetched(id: i32, bytes: usize, partitions: usize) -> Vec<u8> {
    let records = Random(id as u64 + 1).bytes(bytes);
    let mut body = [&id.to_be_bytes()[..], &[0; 4], b"\0\0\0\x01\0\x01t"].concat();
    body.extend((partitions as i32).to_be_bytes());
    for _ in 0..partitions {
        body.extend(b"\0\0\0\0\0\x06");
        body.extend([0; 20]);
        body.extend((bytes as i32).to_be_bytes());
        body.extend(&records);
    }
    framed(&[&body])
}

/// Sends `bytes` in pieces, with pauses where `slow`.
pub(super) async fn send(
    to: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    mut random: Random,
    slow: bool,
) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let most = [10, 1_000, 100_000, 3_000_000][random.up_to(3)];
        let n = (1 + random.up_to(most)).min(rest.len());
        to.write_all(&rest[..n]).await.unwrap();
        rest = &rest[n..];
        if slow && random.up_to(3) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Receives exactly `bytes`, with pauses where `slow`.
pub(super) async fn receive(
    from: &mut (impl AsyncRead + Unpin),
    bytes: &[u8],
    mut random: Random,
    slow: bool,
) {
    let mut received = 0;
    let mut piece = vec![0; 1 << 20];
    while received < bytes.len() {
        let most = (1 + random.up_to(piece.len() - 1)).min(bytes.len() - received);
        let n = from.read(&mut piece[..most]).await.unwrap();
        assert!(n > 0, "an end after {received} of {}", bytes.len());
        let expected = &bytes[received..received + n];
        assert!(piece[..n] == *expected, "wrong bytes behind {received}");
        received += n;
        if slow && random.up_to(3) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}
