//! Both streams over real pipes.

use std::io::Write as _;

use super::*;

fn limits(keep: u64, limit: u64) -> Limits {
    Limits { output_keep_bytes: keep, output_limit_bytes: limit, ..Limits::default() }
}

fn start(output: &Arc<Output>) -> (Reading, std::io::PipeWriter, std::io::PipeWriter) {
    let (out_reader, out_writer) = std::io::pipe().unwrap();
    let (err_reader, err_writer) = std::io::pipe().unwrap();
    (output.start(out_reader.into(), err_reader.into()).unwrap(), out_writer, err_writer)
}

async fn write(mut writer: std::io::PipeWriter, bytes: Vec<u8>) {
    tokio::task::spawn_blocking(move || writer.write_all(&bytes)).await.unwrap().unwrap();
}

#[tokio::test]
async fn both_streams_are_captured_apart() {
    let output = Output::new(&limits(100, 1000));
    let (reading, out, err) = start(&output);
    write(out, b"to stdout".to_vec()).await;
    write(err, b"to stderr".to_vec()).await;
    let captured = reading.finish().await;
    assert_eq!(captured.stdout.kept, b"to stdout");
    assert_eq!(captured.stderr.kept, b"to stderr");
    assert!(!captured.is_over_limit);
}

#[tokio::test]
async fn the_limit_counts_both_streams_and_exactly_the_limit_is_allowed() {
    let output = Output::new(&limits(100, 20));
    let (reading, out, err) = start(&output);
    write(out, vec![b'a'; 10]).await;
    write(err, vec![b'b'; 10]).await;
    assert!(!reading.finish().await.is_over_limit);

    let output = Output::new(&limits(100, 20));
    let (reading, out, err) = start(&output);
    write(out, vec![b'a'; 10]).await;
    write(err, vec![b'b'; 11]).await;
    output.exceeded().await;
    let captured = reading.finish().await;
    assert!(captured.is_over_limit);
    assert_eq!(captured.stdout.total_bytes + captured.stderr.total_bytes, 21);
}

#[tokio::test]
async fn a_flood_is_stopped_in_the_pipe_until_the_end() {
    let output = Output::new(&limits(100, 1000));
    let (reading, mut out, err) = start(&output);
    drop(err);
    let flood = tokio::task::spawn_blocking(move || out.write_all(&vec![b'x'; 1 << 20]));
    output.exceeded().await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!flood.is_finished(), "the writer must block");
    assert!(output.captured(StreamName::Stdout).total_bytes <= 65_536);
    let ended = tokio::time::timeout(Duration::from_secs(20), reading.finish());
    assert!(ended.await.unwrap().is_over_limit);
}

#[tokio::test]
async fn a_follower_gets_every_byte_however_much_there_is() {
    let output = Output::new(&limits(10, 1 << 40));
    let (reading, out, err) = start(&output);
    drop(err);
    let mut follower = output.follow(StreamName::Stdout).unwrap();
    let all: Vec<u8> = (0..=250_u8).cycle().take(3_000_000).collect();
    let writing = tokio::spawn(write(out, all.clone()));
    let mut seen = Vec::new();
    while seen.len() < all.len() {
        seen.extend(follower.next().await.unwrap());
    }
    writing.await.unwrap();
    let finishing = tokio::spawn(reading.finish());
    assert_eq!(follower.next().await, None);
    assert!(seen == all, "bytes were lost or came out of order");
    assert_eq!(finishing.await.unwrap().stdout.dropped_bytes, 2_999_990);
}

#[tokio::test]
async fn a_slow_follower_stalls_the_pipe_and_still_gets_the_rest_after_the_end() {
    let output = Output::new(&limits(10, 1 << 40));
    let (reading, mut out, err) = start(&output);
    let mut follower = output.follow(StreamName::Stdout).unwrap();
    // One window, one chunk in hand, one pipe: more than that cannot be written before somebody reads.
    let writing = tokio::task::spawn_blocking(move || out.write_all(&vec![b'x'; 4 * 65_536]));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!writing.is_finished());
    let (head, window) = (follower.next().await.unwrap(), follower.next().await.unwrap());
    writing.await.unwrap().unwrap();
    drop(err);
    let captured = reading.finish().await;
    assert_eq!(captured.stdout.total_bytes, 4 * 65_536);
    let mut count = head.len() + window.len();
    while let Some(piece) = follower.next().await {
        count += piece.len();
    }
    assert_eq!(count, 4 * 65_536);
}

#[tokio::test]
async fn a_follower_that_is_gone_stalls_nothing() {
    let output = Output::new(&limits(10, 1 << 40));
    let (reading, out, err) = start(&output);
    drop(err);
    let follower = output.follow(StreamName::Stdout).unwrap();
    let writing = tokio::spawn(write(out, vec![b'x'; 1 << 20]));
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(follower);
    writing.await.unwrap();
    assert_eq!(reading.finish().await.stdout.total_bytes, 1 << 20);
}

#[tokio::test]
async fn a_late_follower_is_turned_away_once_the_beginning_is_gone() {
    let output = Output::new(&limits(10, 1 << 40));
    let (reading, out, err) = start(&output);
    drop(err);
    write(out, vec![b'x'; 1 << 20]).await;
    let captured = reading.finish().await;
    assert_eq!(captured.stdout.total_bytes, 1 << 20);
    assert!(output.follow(StreamName::Stdout).is_none());
    assert!(output.follow(StreamName::Stderr).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_reserved_place_holds_the_first_byte_until_it_is_taken_or_forgotten() {
    let output = Output::new(&limits(10, 1 << 40));
    output.reserve();
    let chunk = vec![b'x'; WINDOW_BYTES];
    assert!(output.stdout.append(&chunk, false));
    assert!(!output.stdout.append(&chunk, false));
    let mut follower = output.follow(StreamName::Stdout).unwrap();
    let (head, window) = (follower.next().await.unwrap(), follower.next().await.unwrap());
    assert_eq!(head.len() + window.len(), WINDOW_BYTES);
    assert!(output.stdout.append(&chunk, false));

    assert!(output.stderr.append(&chunk, false));
    assert!(!output.stderr.append(&chunk, false));
    assert!(output.has_reservation());
    tokio::time::sleep(RESERVATION + Duration::from_millis(1)).await;
    assert!(!output.has_reservation());
    assert!(output.stderr.append(&chunk, false));
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_never_ends_does_not_hold_up_the_outcome() {
    let output = Output::new(&limits(10, 1 << 40));
    let (reading, _out_stays_open, _err_stays_open) = start(&output);
    let captured = reading.finish().await;
    assert_eq!(captured.stdout.total_bytes, 0);
    assert_eq!(captured.unread.len(), 2);
    assert!(captured.unread[0].1.contains("held it open 5 s after"), "{:?}", captured.unread);
}

/// Pages of more than 4096 bytes in a pipe: a socket's buffers are passed on whole by splice(2).
#[tokio::test]
async fn what_was_in_the_pipe_at_the_end_is_read_even_if_it_is_more_than_the_pipe_is_said_to_hold() {
    let output = Output::new(&limits(10, 10));
    let (out_reader, out_writer) = std::io::pipe().unwrap();
    let (err_reader, err_writer) = std::io::pipe().unwrap();
    drop(err_writer);
    let (mut from, to) = std::os::unix::net::UnixStream::pair().unwrap();
    // As much as a socket takes without a reader.
    from.write_all(&vec![b'x'; 128 * 1024]).unwrap();
    let mut spliced = 0;
    while let Ok(some) =
        rustix::pipe::splice(&to, None, &out_writer, None, 1 << 20, rustix::pipe::SpliceFlags::NONBLOCK)
    {
        spliced += some;
    }
    let size = rustix::pipe::fcntl_getpipe_size(&out_reader).unwrap();
    assert!(spliced > size, "{spliced} bytes are no more than the {size} that the pipe is said to hold");
    // The limit is reached at once, so that nothing is read before the end.
    output.count(11);
    let reading = output.start(out_reader.into(), err_reader.into()).unwrap();
    drop(out_writer);
    let captured = reading.finish().await;
    assert_eq!((captured.stdout.total_bytes, &captured.unread), (u64::try_from(spliced).unwrap(), &Vec::new()));
}

#[tokio::test]
async fn somebody_who_writes_on_after_the_end_is_not_listened_to() {
    let output = Output::new(&limits(10, 1 << 40));
    let (reading, mut out, err) = start(&output);
    drop(err);
    let _slow = output.follow(StreamName::Stdout).unwrap();
    let writing = std::thread::spawn(move || while out.write_all(&[b'x'; 4096]).is_ok() {});
    let captured = reading.finish().await;
    assert!(captured.stdout.total_bytes <= 4 * 65_536, "{}", captured.stdout.total_bytes);
    assert!(matches!(captured.unread.as_slice(), [(StreamName::Stdout, why)] if why.contains("still writes")));
    writing.join().unwrap();
}

#[tokio::test]
async fn the_debug_form_shows_no_output() {
    let output = Output::new(&limits(100, 100));
    assert!(output.stdout.append(b"secret", false));
    assert!(!format!("{output:?}").contains("secret"));
}
