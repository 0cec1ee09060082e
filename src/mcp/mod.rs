//! The MCP server: grades and reports for agents, on stdin and stdout.
