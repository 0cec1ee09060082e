//! A server that webhooks are sent to.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use crate::model_server::wire::{Connection, HttpRequest};

/// Keeps what is posted to it, until the tests end.
pub(crate) struct Receiver {
    pub(crate) address: String,
    pub(crate) requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl Receiver {
    pub(crate) fn answering(code: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/hook?token=t0p-s3cret", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<HttpRequest>>>::default();
        let received = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut connection = Connection::new(stream.unwrap());
                if let Some(request) = connection.read() {
                    received.lock().unwrap().push(request);
                    connection.write(code, &[], b"");
                }
            }
        });
        Self { address, requests }
    }
}
