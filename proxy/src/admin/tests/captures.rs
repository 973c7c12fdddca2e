//! Captures over their pages: listed, shown, handed out, deleted, taken by hand; and kept from pages in
//! an operator's browser.

use super::*;
use crate::capture::tests::{capture, frame};
use klamp_codec::kept::Kept;
use std::time::{Duration, Instant};

/// Status, headers and body.
async fn ask(address: SocketAddr, method: &str, path: &str, more: &str) -> (u16, String, String) {
    ask_at(address, "127.0.0.1:9645", method, path, more).await
}

/// `more`: further headers, each with its line's end, and the body if there is one.
async fn ask_at(
    address: SocketAddr,
    host: &str,
    method: &str,
    path: &str,
    more: &str,
) -> (u16, String, String) {
    let (headers, body) = more.split_once("\r\n\r\n").unwrap_or((more, ""));
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    let answer = exchange(address, request.as_bytes()).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_owned(), body.to_owned())
}

impl Rig {
    /// Takes a capture of three frames on a connection that was there.
    fn captured(&self, client_id: &str) -> u64 {
        let captures = &self.state.watch.captures;
        let id = captures.next_id();
        let mut capture = capture(id, 10);
        capture.client_id = Some(client_id.to_owned());
        capture.software = Some(("librdkafka".to_owned(), "2.5.0".to_owned()));
        let late = Kept {
            latency: Some(Duration::from_nanos(1_095_412)),
            ..frame(10)
        };
        capture.frames.add(vec![frame(10), late]);
        assert!(captures.take(capture, 9, Instant::now() + Duration::from_secs(3600)));
        id
    }
}

#[tokio::test]
async fn captures_are_listed_shown_and_handed_out() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    let page = |path: &'static str| ask(address, "GET", path, "");
    assert_eq!(page("/captures").await.2, "no captures\n");
    rig.captured("app\r\n\u{1b}[2J");
    let (status, _, text) = page("/captures").await;
    assert_eq!((status, text.lines().count()), (200, 2), "{text}");
    assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    assert!(
        text.contains("UNNAMED_250 in Produce") && text.contains(r"app\r\n\u{1b}[2J"),
        "{text}"
    );
    let (_, _, json) = page("/captures?format=json").await;
    let json: Value = serde_json::from_str(&json).unwrap();
    let listed = &json["captures"][0];
    assert_eq!(
        (&listed["id"], &listed["frames"], &listed["connection"]),
        (&1.into(), &3.into(), &9.into())
    );
    assert_eq!(
        (&listed["kind"], &listed["state"]),
        (&"unnamed".into(), &"recording".into())
    );
    let (_, _, shown) = page("/captures/1?format=json").await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["exchanges"][2]["bytes"], 10);
    assert_eq!(shown["exchanges"][2]["latency_seconds"], 0.001_095_412);
    assert!(shown["exchanges"][1]["latency_seconds"].is_null());
    assert_eq!(shown["reason"], listed["reason"]);
    let (_, _, text) = page("/captures/1").await;
    assert!(
        text.starts_with("capture       1 (recording)\nreason"),
        "{text}"
    );
    assert!(text.contains(" 1.1ms"), "{text}");
    let (status, head, file) = page("/captures/1.pcapng").await;
    assert_eq!((status, file.as_str()), (200, "xxx"), "a byte a frame");
    let name =
        "attachment; filename=\"klamp-19700101T000000.000000Z-1-UNNAMED_250-in-Produce.pcapng\"";
    assert!(
        head.contains(name) && head.contains("application/x-pcapng"),
        "{head}"
    );
    for path in [
        "/captures/2",
        "/captures/2.pcapng",
        "/captures/x",
        "/captures/1.pcap",
        "/capturesx",
        "/captures/",
    ] {
        assert_eq!(page(path).await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn captures_are_on_the_debug_listener_alone_and_behind_its_token() {
    let rig = Rig::new(Some("secret"));
    let (admin, debug) = (
        rig.serve(Surface::Admin).await,
        rig.serve(Surface::Debug).await,
    );
    let id = rig.captured("app");
    let file = format!("/captures/{id}.pcapng");
    for (method, path) in [
        ("GET", "/captures"),
        ("GET", &file),
        ("DELETE", "/captures"),
        ("PUT", "/captures/on"),
    ] {
        assert_eq!(ask(debug, method, path, "").await.0, 401, "{method} {path}");
        let on_admin = ask(admin, method, path, "").await.0;
        assert_eq!(
            on_admin,
            if method == "GET" { 404 } else { 405 },
            "{method} {path}"
        );
    }
    let token = "Authorization: Bearer secret\r\n";
    let (status, ..) = ask_at(debug, "klamp.example:9645", "GET", &file, token).await;
    assert_eq!(status, 200, "who knows the token may use any name");
}

#[tokio::test]
async fn captures_are_deleted_one_by_one_or_all() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    for _ in 0..5 {
        rig.captured("app");
    }
    assert_eq!(ask(address, "DELETE", "/captures/2", "").await.0, 200);
    assert_eq!(ask(address, "DELETE", "/captures/2", "").await.0, 404);
    assert_eq!(rig.state.watch.captures.all().len(), 4);
    assert_eq!(
        ask(address, "DELETE", "/captures", "").await.2,
        "4 captures deleted\n"
    );
    assert!(rig.state.watch.captures.all().is_empty());
    let (_, metrics) = get(address, "/metrics").await;
    assert!(metrics.contains("\nklamp_captures_bytes 0\n"), "{metrics}");
}

#[tokio::test]
async fn a_page_in_a_browser_neither_changes_nor_reads_anything() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    let id = rig.captured("app");
    for headers in [
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://127.0.0.1:9645\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        for (method, path) in [
            ("DELETE", "/captures"),
            ("DELETE", "/captures/1"),
            ("PUT", "/captures/on"),
            ("POST", "/captures?connection=1"),
        ] {
            assert_eq!(
                ask(address, method, path, headers).await.0,
                403,
                "{method} {path} {headers}"
            );
        }
    }
    // (a name of its own that it lets resolve to loopback)
    for host in [
        "evil.example",
        "evil.example:9645",
        "localhost.evil.example:9645",
        "127.0.0.1.evil.example",
    ] {
        for method in ["GET", "DELETE", "POST"] {
            assert_eq!(
                ask_at(address, host, method, "/captures", "").await.0,
                403,
                "{host}"
            );
        }
        assert_eq!(
            ask_at(address, host, "GET", "/captures/1.pcapng", "")
                .await
                .0,
            403
        );
    }
    for host in [
        "127.0.0.1:9645",
        "localhost:9645",
        "localhost",
        "[::1]:9645",
        "127.0.0.1",
    ] {
        assert_eq!(
            ask_at(address, host, "GET", "/captures", "").await.0,
            200,
            "{host}"
        );
    }
    assert!(rig.state.watch.captures.find(id).is_some());
    assert_eq!(rig.state.watch.captures.on().to_string(), "BEYOND");
}

#[tokio::test]
async fn what_triggers_is_told_and_replaced_while_klamp_runs() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    let on = || ask(address, "GET", "/captures/on", "");
    assert_eq!(on().await.2, "BEYOND\n");
    let put = async |list: &str| {
        let (status, _, body) =
            ask(address, "PUT", "/captures/on", &format!("\r\n\r\n{list}")).await;
        (status, body)
    };
    let list = "UNNAMED,NOT_LEADER_OR_FOLLOWER,slow=5s\n";
    assert_eq!(put(list).await, (200, list.to_owned()));
    assert_eq!(on().await.2, list);
    assert!(
        rig.state
            .watch
            .captures
            .is_slow(Duration::from_millis(5_001))
    );
    let (status, why) = put("UNNAMED,SOMETHING").await;
    assert!(
        status == 400 && why.contains("SOMETHING") && why.contains("BEYOND"),
        "{why}"
    );
    assert_eq!(put(&"1,".repeat(4_000)).await.0, 400);
    assert_eq!(on().await.2, list);
    assert_eq!(put("none").await.0, 200);
    assert!(!rig.state.watch.captures.is_slow(Duration::MAX));
}

#[tokio::test]
async fn a_capture_by_hand_is_of_the_connection_that_was_named() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    let mut other = rig.connection("a:9092", b"other", 17);
    let mut wanted = rig.connection("b:9092", b"wanted", 17);
    let asked =
        tokio::spawn(async move { ask(address, "POST", "/captures?connection=2", "").await });
    let taken = loop {
        // (as their threads do)
        other.rests();
        wanted.rests();
        tokio::time::sleep(Duration::from_millis(1)).await;
        if let Some(found) = rig.state.watch.captures.all().pop() {
            break found;
        }
    };
    let (status, head, body) = asked.await.unwrap();
    assert_eq!((status, body.as_str()), (201, "capture 1\n"), "{head}");
    assert!(head.contains("location: /captures/1"), "{head}");
    assert_eq!(taken.connection, 2);
    assert_eq!(taken.capture.client_id.as_deref(), Some("wanted"));
    assert_eq!(
        (taken.capture.kind.label(), &*taken.capture.upstream),
        ("by_hand", "b:9092")
    );
}

#[tokio::test]
async fn a_capture_by_hand_that_cannot_be_taken_is_refused() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    let mut deaf = rig.connection("a:9092", b"app", 17);
    for (path, expected) in [
        ("/captures", 400),
        ("/captures?connection=", 400),
        ("/captures?connection=x", 400),
        ("/captures?connection=77", 404),
    ] {
        assert_eq!(ask(address, "POST", path, "").await.0, expected, "{path}");
    }
    let both = tokio::join!(
        ask(address, "POST", "/captures?connection=1", ""),
        ask(address, "POST", "/captures?connection=1", "")
    );
    let mut both = [both.0.0, both.1.0];
    both.sort_unstable();
    assert_eq!(both, [409, 503]);
    deaf.rests();
    assert!(
        rig.state.watch.captures.all().is_empty(),
        "nobody waits for it any more"
    );
}

#[tokio::test]
async fn a_method_that_a_place_does_not_know_is_refused_with_those_it_does() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    for (method, path, allowed) in [
        ("PUT", "/captures", "GET, HEAD, POST, DELETE"),
        ("DELETE", "/captures/on", "GET, HEAD, PUT"),
        ("POST", "/captures/1", "GET, HEAD, DELETE"),
        ("DELETE", "/captures/1.pcapng", "GET, HEAD"),
    ] {
        let (status, head, _) = ask(address, method, path, "").await;
        assert_eq!(status, 405, "{method} {path}");
        assert!(head.contains(&format!("allow: {allowed}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn a_download_that_breaks_half_way_does_no_harm() {
    let rig = Rig::new(None);
    let address = rig.serve(Surface::Debug).await;
    rig.captured("app");
    for _ in 0..20 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET /captures/1.pcapng HTTP/1.1\r\nHost: localhost\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let _ = stream.read(&mut [0; 9]).await;
    }
    assert_eq!(ask(address, "GET", "/captures/1.pcapng", "").await.2, "xxx");
}
