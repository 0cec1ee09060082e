"""Calls tools of an MCP server by the official client and prints what came back as JSON.

Arguments: `legacy` or `auto`; a JSON list of [tool, arguments]; the command of the server.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters


async def call(client, tool, arguments):
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as error:
        return {"code": error.code, "message": error.message}
    return result.model_dump(mode="json", by_alias=True)


async def main(mode, calls, command):
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        # Listed first: the client then holds every answer against the tool's output schema.
        tools = await client.list_tools()
        print(json.dumps({
            "version": client.protocol_version,
            "server": client.server_info.name,
            "instructions": client.instructions,
            "tools": tools.model_dump(mode="json", by_alias=True)["tools"],
            "answers": [await call(client, *each) for each in json.loads(calls)],
        }))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
