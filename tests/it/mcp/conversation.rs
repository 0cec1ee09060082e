//! Raw messages on stdin and what comes back, line by line.

use serde_json::{Value, json};

use crate::workspace::Workspace;

/// The client's messages, in order.
#[must_use]
pub(crate) struct Conversation {
    workspace: Workspace,
    input: Vec<u8>,
    next: u32,
}

/// The replies.
pub(crate) struct Heard(Vec<Value>);

impl Conversation {
    /// One that begins with the handshake by this version of the protocol; its id is 0.
    pub(crate) fn begin(workspace: Workspace, version: &str) -> Self {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        Self::silent(workspace)
            .asks("initialize", &params)
            .says(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string())
    }

    /// One without handshake.
    pub(crate) fn silent(workspace: Workspace) -> Self {
        Self { workspace, input: Vec::new(), next: 0 }
    }

    /// A line as it is.
    pub(crate) fn says(self, line: &str) -> Self {
        self.bytes(format!("{line}\n").as_bytes())
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.input.extend_from_slice(bytes);
        self
    }

    /// A request with the next id.
    pub(crate) fn asks(mut self, method: &str, params: &Value) -> Self {
        let id = self.next;
        self.next += 1;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.says(&request.to_string())
    }

    pub(crate) fn calls(self, tool: &str, arguments: &Value) -> Self {
        self.asks("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The server with this on stdin, which then ends. Exit code 0; nothing but JSON-RPC.
    #[track_caller]
    pub(crate) fn heard(self) -> Heard {
        let input = self.workspace.path("../input.jsonl");
        std::fs::write(&input, &self.input).unwrap();
        let shell = format!("exec \"$@\" < '{}'", input.display());
        let workspace = self.workspace.args(["serve", "--mcp"]).within(["sh", "-c", &shell, "sh"]);
        Heard::of(&workspace.run().exit(0).stdout)
    }
}

impl Heard {
    #[track_caller]
    pub(crate) fn of(stdout: &str) -> Self {
        let messages = stdout.lines().map(|line| {
            let message: Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            message
        });
        Self(messages.collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The only answer to the request with that id.
    #[track_caller]
    pub(crate) fn answer(&self, id: u32) -> &Value {
        let answers: Vec<&Value> =
            self.0.iter().filter(|message| message["id"].as_u64() == Some(id.into())).collect();
        assert_eq!(answers.len(), 1, "to {id}: {:#?}", self.0);
        answers[0]
    }

    /// The answer of a tool, which has to be the same as text.
    #[track_caller]
    pub(crate) fn answered(&self, id: u32) -> &Value {
        let result = &self.answer(id)["result"];
        assert_eq!(result["isError"], false, "{result}");
        let text: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        &result["structuredContent"]
    }

    /// The words of a tool that refused.
    #[track_caller]
    pub(crate) fn refused(&self, id: u32) -> &str {
        let result = &self.answer(id)["result"];
        assert_eq!(result["isError"], true, "{}", self.answer(id));
        result["content"][0]["text"].as_str().unwrap()
    }
}
