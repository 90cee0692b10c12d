// Streamable HTTP in front of a server that speaks lines, as one at standard input and output does.
// The conformance suite has no other way to reach such a server. Nothing is added: what HTTP has of its
// own (statuses, checks of headers) is missing here, and listed as such. Ends with its input.
//
// UPSTREAM is where lines are spoken, a new client for each connection. A session is a connection of its
// own; whatever comes without one shares one, with ids of ours.

import { randomUUID } from "node:crypto";
import http from "node:http";
import net from "node:net";

const [host, port] = process.env.UPSTREAM.split(":");
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

// One connection: requests out, messages in, each to the request that it belongs to.
class Line {
  requests = new Map();
  listener = null;
  missed = [];
  last = 0;

  constructor() {
    this.socket = net.connect(Number(port), host);
    let rest = "";
    this.socket.setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines.filter(Boolean)) this.take(JSON.parse(line));
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.isOver = true;
      for (const { answer } of this.requests.values()) answer.destroy();
    });
  }

  say(message) {
    this.socket.write(`${JSON.stringify(message)}\n`);
  }

  ask(message, answer) {
    const id = ++this.last;
    const token = message.params?._meta?.progressToken;
    this.requests.set(id, { id: message.id, token, answer });
    answer.on("close", () => {
      if (!this.requests.delete(id)) return;
      this.say({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } });
    });
    this.say({ ...message, id });
  }

  take(message) {
    if (message.method === undefined) {
      const request = this.requests.get(message.id);
      this.requests.delete(message.id);
      if (request) finish(request.answer, { ...message, id: request.id });
      return;
    }
    const { _meta, progressToken } = message.params ?? {};
    const all = [...this.requests.entries()];
    const request =
      all.find(([id]) => id === _meta?.[SUBSCRIPTION]) ??
      all.find(([, one]) => progressToken !== undefined && one.token === progressToken) ??
      all.at(-1);
    const to = request?.[1].answer ?? this.listener;
    if (to) send(to, message);
    else this.missed.push(message);
  }
}

// The first message that is not the last makes a stream of the answer.
function send(answer, message) {
  if (!answer.headersSent) answer.writeHead(200, { "Content-Type": "text/event-stream" });
  answer.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

function finish(answer, message) {
  if (answer.headersSent) {
    send(answer, message);
    answer.end();
  } else {
    answer.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(message));
  }
}

const sessions = new Map();
let shared;

function lineOf(message, id, answer) {
  if (message?.method === "initialize" && message.params?._meta === undefined) {
    const name = randomUUID();
    sessions.set(name, new Line());
    answer.setHeader("Mcp-Session-Id", name);
    return sessions.get(name);
  }
  if (id !== undefined) return sessions.get(id);
  if (!shared || shared.isOver) shared = new Line();
  return shared;
}

async function body(request) {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  return text ? JSON.parse(text) : undefined;
}

const server = http.createServer(async (request, answer) => {
  const id = request.headers["mcp-session-id"];
  const message = await body(request);
  const line = lineOf(message, id, answer);
  if (!line) return answer.writeHead(404).end();
  if (request.method === "DELETE") {
    line.socket.end();
    sessions.delete(id);
    return answer.writeHead(204).end();
  }
  if (request.method === "GET") {
    answer.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
    line.listener = answer;
    for (const missed of line.missed.splice(0)) send(answer, missed);
    answer.on("close", () => (line.listener = null));
    return;
  }
  if (message.id !== undefined && message.method !== undefined) return line.ask(message, answer);
  line.say(message);
  answer.writeHead(202).end();
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume();
process.stdin.on("end", () => process.exit());
