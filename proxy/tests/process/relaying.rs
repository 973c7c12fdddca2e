//! Connections from accept to close, as far as the process as a whole decides about them. What a
//! relay does with bytes is tested beside it.

use crate::broker::{broker, closed, read_request, silent, write_frame};
use crate::client::{ask, connect, exchange, is_closed, read_answer};
use crate::klamp::{Klamp, PATIENCE};
use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

#[test]
fn each_listener_leads_to_its_own_broker() {
    let naming = |name: u8| {
        broker(move |stream| {
            while let Some(request) = read_request(&stream) {
                write_frame(&stream, &[&request.correlation_id, &[0, name]]);
            }
        })
    };
    let (first, second) = (naming(1), naming(2));
    let klamp = Klamp::before(&[&first, &second], &[]);
    for (listen, name) in klamp.listens().iter().zip([1, 2]) {
        let mut client = connect(*listen);
        ask(&client, 7);
        let mut answer = [0; 10];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [0, 0, 0, 6, 0, 0, 0, 7, 0, name]);
    }
}

#[test]
fn what_a_client_sends_while_its_broker_is_dialled_arrives_in_order() {
    // A listener that answers no attempt to connect until its only place is free.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let filler = TcpStream::connect(address).unwrap();
    let klamp = Klamp::before(&[&address.to_string()], &["--dial-timeout=1h"]);
    let client = connect(klamp.listen());
    for id in 0..100 {
        ask(&client, id);
    }
    std::thread::sleep(Duration::from_millis(100));
    drop(filler);
    drop(listener.accept().unwrap());
    // The kernel tries again after a second.
    let (stream, _) = listener.accept().unwrap();
    for id in 0..100 {
        let request = read_request(&stream).unwrap();
        assert_eq!(request.correlation_id, i32::to_be_bytes(id));
        request.answer(&stream);
    }
    for id in 0..100 {
        assert_eq!(read_answer(&client), Some(id));
    }
}

#[test]
fn a_half_closed_client_still_gets_its_answer() {
    let broker = broker(|stream| {
        let request = read_request(&stream).unwrap();
        assert!(
            read_request(&stream).is_none(),
            "the half-close did not pass"
        );
        request.answer(&stream);
    });
    let klamp = Klamp::before(&[&broker], &[]);
    let client = connect(klamp.listen());
    ask(&client, 7);
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_answer(&client), Some(7));
    assert!(is_closed(&client));
}

#[test]
fn a_process_without_descriptors_lives_and_accepts_again_when_it_has_some() {
    let (held, _kept) = silent();
    let (refused, _kept_too) = closed();
    let run = format!(
        "ulimit -n 48 && exec \"$0\" run --log-format=json --threads=1 --max-connections=1000 --dial-timeout=1h \
         --listen=127.0.0.1:0,127.0.0.1:0 --upstream={held},{refused}"
    );
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &run, env!("CARGO_BIN_EXE_klamp")]);
    let klamp = Klamp::spawn(shell);
    // Each takes two descriptors while its broker is dialled. Whether it is an accept or a dial that
    // finds none left is a matter of luck.
    let crowd: Vec<_> = (0..30).map(|_| connect(klamp.listen())).collect();
    while !klamp
        .next_line()
        .to_string()
        .contains("Too many open files")
    {}
    drop(crowd);
    let started = Instant::now();
    assert!(is_closed(&connect(klamp.listens()[1])));
    assert!(started.elapsed() < PATIENCE);
    assert_eq!(klamp.terminate(), Some(0));
}

#[test]
fn a_thousand_connections_come_and_go_and_leave_nothing() {
    let prompt = broker(|stream| {
        while let Some(request) = read_request(&stream) {
            request.answer(&stream);
        }
    });
    let klamp = Klamp::before(&[&prompt], &[]);
    let descriptors = || {
        let listed = std::fs::read_dir(format!("/proc/{}/fd", klamp.id()));
        listed.unwrap().count()
    };
    // One on each thread, so that both have opened what they keep.
    let first = [connect(klamp.listen()), connect(klamp.listen())];
    first.iter().for_each(|client| exchange(client, 0));
    drop(first);
    let before = descriptors();
    for round in 0..20 {
        let clients: Vec<_> = (0..50).map(|_| connect(klamp.listen())).collect();
        for client in &clients {
            exchange(client, round);
        }
    }
    let started = Instant::now();
    while descriptors() > before {
        assert!(
            started.elapsed() < PATIENCE,
            "{} left",
            descriptors() - before
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(klamp.terminate(), Some(0));
}
