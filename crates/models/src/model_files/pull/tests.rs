//! Downloads over loopback: complete, interrupted, resumed and rejected.

use std::fs;
use std::sync::Mutex;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;
use selftest_text::digest;

/// A server's response to one request.
enum Answer {
    /// The content, or the requested range of it.
    Whole,
    /// The whole content without a length, ignoring the range.
    Unmeasured,
    /// Announces the full length and closes after this many bytes.
    Torn(usize),
    /// Only this status.
    Status(&'static str),
    /// Redirects to this path.
    Redirect(&'static str),
    /// Redirects to another host and states the digest, as a model hub does.
    Linked(String),
}

fn content() -> Vec<u8> {
    let mut content = b"GGUF".to_vec();
    content.extend((0..300_000_u32).flat_map(u32::to_le_bytes));
    content
}

/// Serves one connection per response and returns the heads of the requests.
async fn serve(content: Vec<u8>, answers: Vec<Answer>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut heads = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let start = head
                .split_once("range: bytes=")
                .map_or(0, |(_, rest)| rest.split_once('-').unwrap().0.parse().unwrap());
            heads.push(head);
            let total = content.len();
            let (status, headers, body): (String, String, &[u8]) = match answer {
                Answer::Whole if start >= total && start > 0 => {
                    let range = format!("content-range: bytes */{total}\r\ncontent-length: 0\r\n");
                    ("416 Range Not Satisfiable".into(), range, &[])
                }
                Answer::Whole if start > 0 => {
                    let range = format!("bytes {start}-{}/{total}", total - 1);
                    let length = total - start;
                    let headers = format!("content-range: {range}\r\ncontent-length: {length}\r\n");
                    ("206 Partial Content".into(), headers, &content[start..])
                }
                Answer::Whole => {
                    ("200 OK".into(), format!("content-length: {total}\r\n"), &content)
                }
                Answer::Unmeasured => ("200 OK".into(), String::new(), &content),
                Answer::Torn(bytes) => {
                    ("200 OK".into(), format!("content-length: {total}\r\n"), &content[..bytes])
                }
                Answer::Status(status) => (status.into(), "content-length: 0\r\n".into(), &[]),
                Answer::Linked(digest) => {
                    let place = "location: https://elsewhere.invalid/blob\r\n";
                    let headers = format!(
                        "{place}x-linked-etag: \"{digest}\"\r\nx-linked-size: {total}\r\n\
                         content-length: 0\r\n"
                    );
                    ("302 Found".into(), headers, &[])
                }
                Answer::Redirect(path) => {
                    ("302 Found".into(), format!("location: {path}\r\ncontent-length: 0\r\n"), &[])
                }
            };
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            // The client may hang up as soon as it has seen enough.
            let _ = stream.write_all(body).await;
            let _ = stream.shutdown().await;
        }
        heads
    });
    (base, task)
}

struct World {
    cache: TempDir,
    environment: ModelEnvironment,
}

impl World {
    fn new() -> Self {
        let cache = TempDir::new().unwrap();
        let cache_folder = cache.path().join("models");
        let environment = ModelEnvironment { cache_folder, ..ModelEnvironment::default() };
        Self { cache, environment }
    }

    async fn pull(&self, source: &str, sha256: Option<&str>) -> Result<PathBuf, ModelError> {
        pull(source, sha256, &self.environment, &|_| {}).await
    }

    fn files(&self) -> Vec<String> {
        let folder = fs::read_dir(self.cache.path().join("models")).unwrap();
        folder.map(|item| item.unwrap().file_name().into_string().unwrap()).collect()
    }
}

#[tokio::test]
async fn a_file_is_fetched_once_and_whole() {
    let (base, server) = serve(content(), vec![Answer::Whole]).await;
    let world = World::new();
    let told = Mutex::new(Vec::new());
    let source = format!("{base}/some/model.gguf?token=secret");
    let digest = digest::sha256_hex(&content());
    let hear = |progress| told.lock().unwrap().push(progress);
    let file = pull(&source, Some(&digest), &world.environment, &hear).await.unwrap();
    assert_eq!(file, world.environment.cache_folder.join("model.gguf"));
    assert_eq!(fs::read(&file).unwrap(), content());
    assert_eq!(world.files(), ["model.gguf"]);
    let all = content().len() as u64;
    assert_eq!(
        told.lock().unwrap().last(),
        Some(&TransferProgress { done: all, total: Some(all) })
    );
    // The server is gone, so only an existing file can be the result.
    server.await.unwrap();
    assert_eq!(world.pull(&source, Some(&digest)).await.unwrap(), file);
    assert_eq!(world.pull(&source, None).await.unwrap(), file);
}

#[tokio::test]
async fn a_torn_transfer_goes_on_where_it_stopped() {
    let (base, server) = serve(content(), vec![Answer::Torn(70_000), Answer::Whole]).await;
    let world = World::new();
    let source = format!("{base}/model.gguf");
    let error = world.pull(&source, None).await.unwrap_err();
    assert!(matches!(error, ModelError::Unreachable { .. }), "{error:?}");
    assert!(error.hint().unwrap().contains("goes on where it stopped"));
    assert_eq!(world.files(), ["model.gguf.part"]);
    let held = fs::metadata(world.environment.cache_folder.join("model.gguf.part")).unwrap().len();
    assert!(held > 0);
    let file = world.pull(&source, Some(&digest::sha256_hex(&content()))).await.unwrap();
    assert_eq!(fs::read(file).unwrap(), content());
    let heads = server.await.unwrap();
    assert!(heads[1].contains(&format!("range: bytes={held}-")), "{}", heads[1]);
}

#[tokio::test]
async fn a_server_without_ranges_starts_over() {
    let (base, server) = serve(content(), vec![Answer::Torn(70_000), Answer::Unmeasured]).await;
    let world = World::new();
    let source = format!("{base}/model.gguf");
    world.pull(&source, None).await.unwrap_err();
    let file = world.pull(&source, None).await.unwrap();
    assert_eq!(fs::read(file).unwrap(), content());
    server.await.unwrap();
}

#[tokio::test]
async fn a_complete_part_is_only_put_in_place() {
    let (base, server) = serve(content(), vec![Answer::Whole]).await;
    let world = World::new();
    fs::create_dir_all(&world.environment.cache_folder).unwrap();
    fs::write(world.environment.cache_folder.join("model.gguf.part"), content()).unwrap();
    let file = world.pull(&format!("{base}/model.gguf"), None).await.unwrap();
    assert_eq!(fs::read(file).unwrap(), content());
    assert_eq!(world.files(), ["model.gguf"]);
    server.await.unwrap();
}

#[tokio::test]
async fn a_part_longer_than_the_file_is_dropped() {
    let (base, server) = serve(content(), vec![Answer::Whole, Answer::Whole]).await;
    let world = World::new();
    fs::create_dir_all(&world.environment.cache_folder).unwrap();
    let longer = [content(), content()].concat();
    fs::write(world.environment.cache_folder.join("model.gguf.part"), longer).unwrap();
    let file = world.pull(&format!("{base}/model.gguf"), None).await.unwrap();
    assert_eq!(fs::read(file).unwrap(), content());
    server.await.unwrap();
}

#[tokio::test]
async fn a_wrong_digest_names_both_and_keeps_nothing() {
    let (base, server) = serve(content(), vec![Answer::Whole]).await;
    let world = World::new();
    let wrong = "0".repeat(64);
    let error = world.pull(&format!("{base}/model.gguf"), Some(&wrong)).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&wrong) && text.contains(&digest::sha256_hex(&content())), "{text}");
    assert!(world.files().is_empty());
    server.await.unwrap();
}

#[tokio::test]
async fn an_error_status_is_reported_with_the_address() {
    let answers = vec![Answer::Status("404 Not Found"), Answer::Status("403 Forbidden")];
    let (base, server) = serve(content(), answers).await;
    let world = World::new();
    let source = format!("{base}/model.gguf?token=secret");
    let error = world.pull(&source, None).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{base}/model.gguf answered 404 Not Found"));
    let error = world.pull(&source, None).await.unwrap_err();
    assert!(error.hint().unwrap().contains("login"), "{error:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_page_is_no_model() {
    let page = b"<html>".repeat(1000);
    let (base, server) = serve(page, vec![Answer::Whole]).await;
    let world = World::new();
    let error = world.pull(&format!("{base}/model.gguf"), None).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{base}/model.gguf is not a GGUF file"));
    assert!(world.files().is_empty());
    server.await.unwrap();
    let (base, server) = serve(b"GG".to_vec(), vec![Answer::Whole]).await;
    let error = world.pull(&format!("{base}/model.gguf"), None).await.unwrap_err();
    assert_eq!(error.to_string(), format!("{base}/model.gguf is not a GGUF file"));
    server.await.unwrap();
}

#[tokio::test]
async fn hf_names_are_addresses_of_the_endpoint() {
    let answers = vec![Answer::Redirect("/elsewhere"), Answer::Whole];
    let (base, server) = serve(content(), answers).await;
    let mut world = World::new();
    world.environment.hf_endpoint = Some(format!("{base}/"));
    let file = world.pull("hf:owner/repo-GGUF/sub/model.gguf", None).await.unwrap();
    assert_eq!(file.file_name().unwrap(), "model.gguf");
    let heads = server.await.unwrap();
    assert!(heads[0].starts_with("get /owner/repo-gguf/resolve/main/sub/model.gguf "), "{heads:?}");
    assert!(heads[1].starts_with("get /elsewhere "), "{heads:?}");
}

#[tokio::test]
async fn a_redirect_to_plain_http_elsewhere_is_not_followed() {
    let answers = vec![Answer::Redirect("http://example.org/model.gguf")];
    let (base, server) = serve(content(), answers).await;
    let error = World::new().pull(&format!("{base}/model.gguf"), None).await.unwrap_err();
    assert!(error.to_string().contains("not https"), "{error}");
    server.await.unwrap();
}

#[tokio::test]
async fn other_sources_are_refused_before_anything_is_asked() {
    let world = World::new();
    for source in [
        "http://example.org/model.gguf",
        "ftp://example.org/model.gguf",
        "https://example.org/",
        "https://example.org/page.html",
        "https://example.org/..gguf",
        "https://example.org/%2e%2e%2fx.gguf",
        "hf:owner/model.gguf",
        "hf:owner/../model.gguf",
        "hf:owner/repo/",
        "hf:owner/repo/../../x.gguf",
        "model.gguf",
        "",
    ] {
        let error = world.pull(source, None).await.unwrap_err();
        assert!(matches!(error, ModelError::InvalidName { .. }), "{source}: {error:?}");
    }
    let error = world.pull("https://example.org/x.gguf", Some("abc")).await.unwrap_err();
    assert_eq!(error.to_string(), "`abc` is not a SHA-256");
    assert!(!world.environment.cache_folder.exists());
}

#[tokio::test]
async fn two_pulls_of_one_file_do_not_mix() {
    let world = World::new();
    fs::create_dir_all(&world.environment.cache_folder).unwrap();
    let part = PartialFile::open(world.environment.cache_folder.join("model.gguf.part")).unwrap();
    let error = world.pull("http://127.0.0.1:9/model.gguf", None).await.unwrap_err();
    assert!(error.to_string().contains("by another process"), "{error}");
    drop(part);
}

/// An environment whose hub is this server.
fn hub(base: &str) -> World {
    let mut world = World::new();
    world.environment.hf_endpoint = Some(base.to_owned());
    world
}

async fn from(world: &World) -> Result<PathBuf, ModelError> {
    from_with(world, &digest::sha256_hex(&content())).await
}

async fn from_with(world: &World, sha256: &str) -> Result<PathBuf, ModelError> {
    let wanted = HubFile { repository: "Owner/Tiny-GGUF", file: "Tiny-Q8_0.gguf", sha256 };
    from_hub("tiny", wanted, &world.environment, &|_| {}).await
}

#[tokio::test]
async fn a_named_file_is_checked_against_the_digest_that_the_hub_states() {
    let digest = digest::sha256_hex(&content());
    let answers = vec![
        Answer::Redirect("/Owner/New-GGUF/resolve/main/Tiny-Q8_0.gguf"),
        Answer::Linked(digest),
        Answer::Whole,
    ];
    let (base, server) = serve(content(), answers).await;
    let world = hub(&base);
    let file = from(&world).await.unwrap();
    assert_eq!(file, world.environment.cache_folder.join("tiny.gguf"));
    assert_eq!(fs::read(&file).unwrap(), content());
    let heads = server.await.unwrap();
    let asked: Vec<&str> = heads.iter().map(|head| head.split(" http/").next().unwrap()).collect();
    assert_eq!(
        asked,
        [
            "head /owner/tiny-gguf/resolve/main/tiny-q8_0.gguf",
            "head /owner/new-gguf/resolve/main/tiny-q8_0.gguf",
            "get /owner/tiny-gguf/resolve/main/tiny-q8_0.gguf",
        ]
    );
}

#[tokio::test]
async fn a_named_file_with_another_digest_is_not_kept() {
    let other = digest::sha256_hex(b"other");
    let (base, _server) =
        serve(content(), vec![Answer::Linked(other.clone()), Answer::Whole]).await;
    let world = hub(&base);
    let error = from_with(&world, &other).await.unwrap_err().to_string();
    assert!(error.contains(&format!("expected {other}")), "{error}");
    assert_eq!(world.files(), Vec::<String>::new());
}

#[tokio::test]
async fn a_named_file_that_the_hub_has_replaced_is_not_fetched() {
    let other = digest::sha256_hex(b"other");
    let (base, _server) = serve(content(), vec![Answer::Linked(other.clone())]).await;
    let world = hub(&base);
    let error = from(&world).await.unwrap_err();
    assert!(error.to_string().contains(&format!("has SHA-256 {other}, but tiny is")), "{error}");
    assert!(error.hint().unwrap().contains("model pull hf:Owner/Tiny-GGUF/Tiny-Q8_0.gguf"));
    assert!(!world.environment.cache_folder.exists(), "nothing was asked for");
}

#[tokio::test]
async fn a_hub_that_states_no_digest_is_not_trusted() {
    for (answer, words) in [
        (Answer::Redirect("https://elsewhere.invalid/blob"), "states no SHA-256"),
        (Answer::Linked("not a digest".to_owned()), "states no SHA-256"),
        (Answer::Status("200 OK"), "states no SHA-256"),
        (Answer::Status("404 Not Found"), "answered 404"),
    ] {
        let (base, _server) = serve(content(), vec![answer]).await;
        let error = from(&hub(&base)).await.unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.hint().is_some());
    }
}
