"""The official Python SDK as a client of ours. Does what every client does and prints what it saw.

Arguments: `stdio` or `http`, and the protocol to offer.
"""

import json
import os
import re
import subprocess
import sys

import anyio
import httpx2
import mcp.client.session
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, ResourceTemplateReference

TRANSPORT, OFFERED = sys.argv[1:3]
NAME = f"{TRANSPORT}-{OFFERED}"
# The newest has no handshake; the others are offered in one, as older clients do.
MODE = "auto" if OFFERED == "2026-07-28" else "legacy"
mcp.client.session.LATEST_HANDSHAKE_VERSION = OFFERED
SETUP = json.loads(os.environ["SETUP"])


def target(stack_client):
    if TRANSPORT == "stdio":
        return StdioServerParameters(
            command=SETUP["dodona"], args=SETUP["arguments"], env=SETUP["environment"], cwd=SETUP["project"]
        )
    return streamable_http_client(SETUP["url"], http_client=stack_client)


async def everything(fetch, items):
    """All pages of a list, and how many there were."""
    found, cursor, pages = [], None, 0
    while True:
        page = await fetch(cursor=cursor)
        found += items(page)
        pages += 1
        cursor = page.next_cursor
        if not cursor:
            return found, pages


async def refused(work):
    try:
        await work
    except MCPError as error:
        return error.error.code
    return None


def approve(message):
    """What a person does on the command line who read the progress message."""
    approval = re.search(r"approve ([0-9a-f]+)", message).group(1)
    environment = {**os.environ, **SETUP["environment"]}
    command = [SETUP["dodona"], "approvals", "approve", approval]
    subprocess.run(command, env=environment, check=True, capture_output=True)


async def write_with_approval(client):
    """The call waits until a person has agreed, and says so."""
    progress = []

    async def on_progress(value, total, message):
        progress.append(value)
        if "waiting for a person" in (message or "") and len(progress) == 1:
            await anyio.to_thread.run_sync(approve, message)

    arguments = {"path": f"agreed-{NAME}.md", "body": "# Agreed\n"}
    result = await client.call_tool("vault_write", arguments, progress_callback=on_progress)
    return not result.is_error and bool(progress)


async def cancel_while_waiting(client):
    """The call is given up while it waits."""
    arguments = {"path": f"cancelled-{NAME}.md", "body": "# Never\n"}
    with anyio.CancelScope() as scope:

        async def on_progress(value, total, message):
            scope.cancel()

        await client.call_tool("vault_write", arguments, progress_callback=on_progress)
    return scope.cancelled_caught


async def write_with_form(stack_client):
    """A client that can show a form asks the person in front of it."""
    messages = []

    async def show(context, params):
        messages.append(params.message)
        return ElicitResult(action="accept", content={"reason": "fine"})

    async with Client(target(stack_client), mode=MODE, elicitation_callback=show) as client:
        result = await client.call_tool("vault_write", {"path": f"form-{NAME}.md", "body": "# Form\n"})
    return not result.is_error and len(messages) == 1 and "vault.write" in messages[0]


async def main(stack_client):
    async with Client(target(stack_client), mode=MODE) as client:
        tools, _ = await everything(client.list_tools, lambda page: page.tools)
        notes, pages = await everything(client.list_resources, lambda page: page.resources)
        templates = await client.list_resource_templates()
        form = ResourceTemplateReference(type="ref/resource", uri=templates.resource_templates[0].uri_template)
        completed = await client.complete(form, {"name": "path", "value": "aut"})
        prompts = await client.list_prompts()
        prompt = await client.get_prompt("ask", {"question": "Why?"})
        note = await client.read_resource(next(note.uri for note in notes if note.name == "auth.md"))
        found = await client.call_tool("vault_search", {"query": "refresh tokens"})
        values = []

        async def on_progress(value, total, message):
            values.append(value)

        answer = await client.call_tool(
            "ask", {"question": "Why were refresh tokens dropped?"}, progress_callback=on_progress
        )
        thread = {"thread_id": NAME, "content": "said by a client"}
        await client.call_tool("thread_push", thread)
        read = await client.call_tool("thread_read", {"thread_id": thread["thread_id"]})
        denied = await client.call_tool("vault_delete", {"path": "auth.md"})
        wrong = await client.call_tool("vault_search", {"query": 7})
        seen = {
            "protocol": client.protocol_version,
            "instructions": bool(client.instructions),
            "tools": sorted(tool.name for tool in tools),
            "read_only": next(t.annotations.read_only_hint for t in tools if t.name == "vault_search"),
            "notes": len(notes),
            "pages": pages,
            "templates": [template.uri_template for template in templates.resource_templates],
            "completed": completed.completion.values,
            "prompts": [prompt.name for prompt in prompts.prompts],
            "prompt": prompt.messages[0].content.text.startswith("Why?"),
            "note": [note.contents[0].mime_type, note.contents[0].text],
            "found": found.structured_content["passages"][0]["source"]["path"],
            "answered": bool(answer.structured_content["sources"]) and not answer.is_error,
            "progress": bool(values) and values == sorted(set(values)),
            "author": read.structured_content["entries"][0]["author"],
            "denied": [denied.is_error, denied.content[0].text],
            "wrong": wrong.is_error,
            "unknown_tool": await refused(client.call_tool("no_such_tool", {})),
            "unknown_note": await refused(client.read_resource("dodona://vault/none.md")),
            "agreed": await write_with_approval(client),
            "cancelled": await cancel_while_waiting(client),
        }
        # The connection is as good as before.
        again = await client.call_tool("vault_read", {"path": "auth.md"})
        seen["after"] = not again.is_error
    seen["form"] = await write_with_form(stack_client)
    print(json.dumps(seen))


async def run():
    headers = {"Authorization": f"Bearer {SETUP.get('token')}", "X-Dodona-Project": SETUP.get("project_id") or ""}
    async with httpx2.AsyncClient(headers=headers, timeout=240) as stack_client:
        with anyio.fail_after(240):
            await main(stack_client)


anyio.run(run)
