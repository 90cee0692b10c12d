// A small real model behind the part of OpenAI's protocol that a chat needs: streamed text, tool
// calls in the form this family of models was trained on, usage, and refusals as JSON.
//
//   node server.mjs MODEL.gguf
//
// The first line of output is its address. It ends when its input does, so that it never outlives
// the test that started it.

import { createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// Resolved from the working directory, where npm has put the package: this file is elsewhere.
const resolved = createRequire(`${process.cwd()}/`).resolve("node-llama-cpp");
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(resolved));

/** The longest answer, in tokens; a small model does not always know when to stop. */
const LONGEST = 96;
/** What the model can hold, in tokens. */
const CONTEXT = 8192;

const llama = await getLlama({ gpu: false, build: "never", maxThreads: 1, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath: process.argv[2] });
const context = await model.createContext({ contextSize: CONTEXT, threads: 1 });
const sequence = context.getSequence();
const marker = (name) => model.tokenize(`<|${name}|>`, true);

/** The tokens of a conversation. Only the markers are special: what is said cannot forge one. */
function prompt({ messages, tools }) {
  const tokens = [];
  const say = (role, text) => {
    tokens.push(...marker("im_start"), ...model.tokenize(`${role}\n${text}`, false));
    tokens.push(...marker("im_end"), ...model.tokenize("\n", false));
  };
  if (tools?.length > 0) {
    const lines = tools.map((tool) => `${tool.function.name}: ${tool.function.description}`);
    say("system", `You can call functions, as <tool_call>{"name": …, "arguments": {…}}</tool_call>:\n${lines.join("\n")}`);
  }
  for (const message of messages) {
    const calls = (message.tool_calls ?? []).map((call) => `<tool_call>${JSON.stringify(call.function)}</tool_call>`);
    say(message.role === "tool" ? "user" : message.role, [message.content ?? "", ...calls].join("\n"));
  }
  tokens.push(...marker("im_start"), ...model.tokenize("assistant\n", false));
  return tokens;
}

/** Says what the model says, as it says it. Answers how many tokens that were, and why it ended. */
async function generate(tokens, limit, say) {
  await sequence.clearHistory();
  const said = [];
  let text = "";
  for await (const token of sequence.evaluate(tokens, { temperature: 0 })) {
    if (model.isEogToken(token)) return { count: said.length, finish: "stop" };
    said.push(token);
    // A character can be several tokens: what is not one yet waits for the rest.
    const whole = model.detokenize(said);
    if (!whole.endsWith("\ufffd") && whole.length > text.length) {
      say(whole.slice(text.length));
      text = whole;
    }
    if (said.length >= limit) return { count: said.length, finish: "length" };
  }
  return { count: said.length, finish: "stop" };
}

/** Tells text from tool calls in what comes in pieces. */
class Reader {
  constructor(onText) {
    this.onText = onText;
    this.held = "";
    this.calls = [];
  }

  add(more) {
    this.held += more;
    const [open, close] = ["<tool_call>", "</tool_call>"];
    for (;;) {
      const begin = this.held.indexOf(open);
      const end = this.held.indexOf(close, begin);
      if (begin < 0 || end < 0) break;
      this.text(this.held.slice(0, begin));
      this.call(this.held.slice(begin + open.length, end));
      this.held = this.held.slice(end + close.length);
    }
    const mark = this.held.indexOf("<");
    const safe = mark < 0 ? this.held.length : mark;
    this.text(this.held.slice(0, safe));
    this.held = this.held.slice(safe);
    // No tool call begins like this.
    if (!open.startsWith(this.held.slice(0, open.length))) this.end();
  }

  text(text) {
    if (text !== "") this.onText(text);
  }

  call(source) {
    try {
      const { name, arguments: given } = JSON.parse(source);
      if (typeof name !== "string") throw new TypeError("a call has no name");
      const id = `call_${this.calls.length}`;
      this.calls.push({ index: this.calls.length, id, type: "function", function: { name, arguments: JSON.stringify(given ?? {}) } });
    } catch {
      this.text(source);
    }
  }

  end() {
    this.text(this.held);
    this.held = "";
  }
}

async function complete(body, response) {
  const tokens = prompt(body);
  if (tokens.length + LONGEST > CONTEXT) {
    return refuse(response, 400, `This model's maximum context length is ${CONTEXT} tokens`, "context_length_exceeded");
  }
  const head = { id: `chatcmpl-${Date.now()}`, created: Math.floor(Date.now() / 1000), model: body.model };
  const chunk = (delta, finish_reason = null) =>
    event({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] });
  const event = (value) => response.write(`data: ${JSON.stringify(value)}\n\n`);
  response.writeHead(200, { "content-type": "text/event-stream" });
  chunk({ role: "assistant", content: "" });
  const reader = new Reader((content) => chunk({ content }));
  const limit = Math.min(body.max_completion_tokens ?? body.max_tokens ?? LONGEST, LONGEST);
  const { count, finish } = await generate(tokens, limit, (more) => reader.add(more));
  reader.end();
  if (reader.calls.length > 0) chunk({ tool_calls: reader.calls });
  chunk({}, reader.calls.length > 0 ? "tool_calls" : finish);
  if (body.stream_options?.include_usage) {
    const usage = { prompt_tokens: tokens.length, completion_tokens: count, total_tokens: tokens.length + count };
    event({ ...head, object: "chat.completion.chunk", choices: [], usage });
  }
  response.end("data: [DONE]\n\n");
}

function refuse(response, status, message, code) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message, code, type: "invalid_request_error" } }));
}

/** One answer at a time: there is one context. */
let queue = Promise.resolve();

const server = createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  if (request.method !== "POST" || request.url !== "/v1/chat/completions") {
    return refuse(response, 404, `there is no ${request.method} ${request.url} here`, "not_found");
  }
  let body;
  try {
    body = JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    return refuse(response, 400, "the request is no JSON", "bad_request");
  }
  if (body.stream !== true || !Array.isArray(body.messages)) {
    return refuse(response, 400, "only streamed chats are served", "bad_request");
  }
  queue = queue.then(() => complete(body, response)).catch((error) => {
    console.error(error);
    response.destroy();
  });
});

server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
process.stdin.resume().on("end", () => process.exit(0));
