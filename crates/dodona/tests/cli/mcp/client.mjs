// The official TypeScript SDK as a client of ours. Does what every client does and prints what it saw.
// Arguments: `stdio` or `http`, and the protocol to offer.

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The packages are below the working directory, and not beside this file.
const require = createRequire(pathToFileURL(`${process.cwd()}/package.json`));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [transport, offered] = process.argv.slice(2);
const name = `${transport}-${offered}-ts`;
const setup = JSON.parse(process.env.SETUP);

// Offers another protocol than the newest, as older clients do, and keeps what was agreed on.
function speaking(transport) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize") message.params.protocolVersion = offered;
    return send(message, options);
  };
  const set = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    transport.agreedOn = version;
    set?.(version);
  };
  return transport;
}

function connection() {
  if (transport === "stdio") {
    const { dodona: command, arguments: args, environment: env, project: cwd } = setup;
    return new StdioClientTransport({ command, args, env, cwd });
  }
  const headers = { Authorization: `Bearer ${setup.token}`, "X-Dodona-Project": setup.project_id };
  return new StreamableHTTPClientTransport(new URL(setup.url), { requestInit: { headers } });
}

async function everything(fetch, key) {
  const found = [];
  for (let cursor, pages = 1; ; pages++) {
    const page = await fetch(cursor ? { cursor } : {});
    found.push(...page[key]);
    cursor = page.nextCursor;
    if (!cursor) return [found, pages];
  }
}

// The machine may be busy with other tests.
const timeout = 240_000;

const refused = (work) => work.then(() => null, (error) => error.code);

// What a person does on the command line who read the progress message.
function approve(message) {
  const [, id] = /approve ([0-9a-f]+)/.exec(message);
  execFileSync(setup.dodona, ["approvals", "approve", id], { env: { ...process.env, ...setup.environment } });
}

async function writeWithApproval(client) {
  const progress = [];
  const onprogress = ({ progress: value, message }) => {
    if (progress.push(value) === 1 && message.includes("waiting for a person")) approve(message);
  };
  const call = { name: "vault_write", arguments: { path: `agreed-${name}.md`, body: "# Agreed\n" } };
  const result = await client.callTool(call, undefined, { onprogress, timeout });
  return !result.isError && progress.length > 0;
}

async function cancelWhileWaiting(client) {
  const giveUp = new AbortController();
  const call = { name: "vault_write", arguments: { path: `cancelled-${name}.md`, body: "# Never\n" } };
  const onprogress = () => giveUp.abort("not wanted any more");
  const ended = client.callTool(call, undefined, { onprogress, timeout, signal: giveUp.signal });
  return ended.then(() => false, () => giveUp.signal.aborted);
}

// A client that can show a form asks the person in front of it.
async function writeWithForm() {
  const client = new Client({ name: "test", version: "1.0.0" }, { capabilities: { elicitation: {} } });
  const messages = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    messages.push(params.message);
    return { action: "accept", content: { reason: "fine" } };
  });
  await client.connect(speaking(connection()));
  const call = { name: "vault_write", arguments: { path: `form-${name}.md`, body: "# Form\n" } };
  const result = await client.callTool(call, undefined, { timeout });
  await client.close();
  return !result.isError && messages.length === 1 && messages[0].includes("vault.write");
}

const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(speaking(connection()));
const [tools] = await everything((page) => client.listTools(page), "tools");
const [notes, pages] = await everything((page) => client.listResources(page, { timeout }), "resources");
const { resourceTemplates } = await client.listResourceTemplates();
const [{ uriTemplate: uri }] = resourceTemplates;
const { completion } = await client.complete({ ref: { type: "ref/resource", uri }, argument: { name: "path", value: "aut" } });
const { prompts } = await client.listPrompts();
const prompt = await client.getPrompt({ name: "ask", arguments: { question: "Why?" } });
const note = await client.readResource({ uri: notes.find((note) => note.name === "auth.md").uri });
const found = await client.callTool({ name: "vault_search", arguments: { query: "refresh tokens" } }, undefined, { timeout });
const values = [];
const question = { question: "Why were refresh tokens dropped?" };
const onprogress = ({ progress }) => values.push(progress);
const answer = await client.callTool({ name: "ask", arguments: question }, undefined, { onprogress, timeout });
const thread = { thread_id: name, content: "said by a client" };
await client.callTool({ name: "thread_push", arguments: thread }, undefined, { timeout });
const read = await client.callTool({ name: "thread_read", arguments: { thread_id: thread.thread_id } });
const denied = await client.callTool({ name: "vault_delete", arguments: { path: "auth.md" } });
const wrong = await client.callTool({ name: "vault_search", arguments: { query: 7 } });
const seen = {
  protocol: client.transport.agreedOn,
  instructions: Boolean(client.getInstructions()),
  tools: tools.map((tool) => tool.name).sort(),
  read_only: tools.find((tool) => tool.name === "vault_search").annotations.readOnlyHint,
  notes: notes.length,
  pages,
  templates: resourceTemplates.map((template) => template.uriTemplate),
  completed: completion.values,
  prompts: prompts.map((prompt) => prompt.name),
  prompt: prompt.messages[0].content.text.startsWith("Why?"),
  note: [note.contents[0].mimeType, note.contents[0].text],
  found: found.structuredContent.passages[0].source.path,
  answered: answer.structuredContent.sources.length > 0 && !answer.isError,
  progress: values.length > 0 && values.every((value, at) => at === 0 || value > values[at - 1]),
  author: read.structuredContent.entries[0].author,
  denied: [denied.isError, denied.content[0].text],
  wrong: wrong.isError,
  unknown_tool: await refused(client.callTool({ name: "no_such_tool", arguments: {} })),
  unknown_note: await refused(client.readResource({ uri: "dodona://vault/none.md" })),
  agreed: await writeWithApproval(client),
  cancelled: await cancelWhileWaiting(client),
};
const again = await client.callTool({ name: "vault_read", arguments: { path: "auth.md" } });
seen.after = !again.isError;
await client.close();
seen.form = await writeWithForm();
console.log(JSON.stringify(seen));
