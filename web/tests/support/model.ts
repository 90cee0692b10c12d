/** A model that says what a test tells it to, over OpenAI's protocol. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  content: string | null;
}

/** What the model was sent. */
export interface Request {
  messages: Message[];
  model: string;
}

/** One answer: texts as they are streamed, tools it wants, and things to wait for in between. */
export type Step = { text: string } | { tool: string; arguments: Record<string, unknown> } | { wait: Promise<unknown> };

/** An HTTP error instead of an answer. */
export interface Failure {
  status: number;
  message: string;
}

export type Reply = Step[] | Failure | ((request: Request) => Step[]);

export class Model {
  readonly requests: Request[] = [];
  /** The `Authorization` header of each request for an answer. */
  readonly authorizations: string[] = [];
  /** The models that it lists. */
  models: string[] = [];
  private readonly replies: Reply[] = [];
  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<Model> {
    let model: Model | undefined;
    const server = createServer((request, response) => void model?.answer(request, response));
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    model = new Model(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
    return model;
  }

  /** What it says next, in this order. With nothing left it says "ok". */
  says(...replies: Reply[]): void {
    this.replies.push(...replies);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private async answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    if (!incoming.url?.endsWith("/chat/completions")) {
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ data: this.models.map((id) => ({ id })) }));
      return;
    }
    const request = JSON.parse(Buffer.concat(chunks).toString()) as Request;
    this.requests.push(request);
    this.authorizations.push(incoming.headers.authorization ?? "");
    const reply = this.replies.shift() ?? [{ text: "ok" }];
    response.on("error", () => {});
    if ("status" in reply) {
      const body = JSON.stringify({ error: { message: reply.message } });
      response.writeHead(reply.status, { "content-type": "application/json" }).end(body);
      return;
    }
    const steps = typeof reply === "function" ? reply(request) : reply;
    response.writeHead(200, { "content-type": "text/event-stream" });
    await this.stream(response, steps);
  }

  private async stream(response: ServerResponse, steps: Step[]): Promise<void> {
    const send = (delta: unknown, finish: string | null = null) => {
      const event = { id: "1", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] };
      if (!response.destroyed) response.write(`data: ${JSON.stringify(event)}\n\n`);
    };
    let tools = 0;
    send({ role: "assistant", content: "" });
    for (const step of steps) {
      if ("wait" in step) await step.wait;
      else if ("text" in step) send({ content: step.text });
      else {
        const called = { name: step.tool, arguments: JSON.stringify(step.arguments) };
        send({
          tool_calls: [
            { index: tools, id: `call_${this.requests.length}_${tools}`, type: "function", function: called },
          ],
        });
        tools += 1;
      }
    }
    send({}, tools > 0 ? "tool_calls" : "stop");
    const usage = { prompt_tokens: 1_200, completion_tokens: 80, total_tokens: 1_280 };
    if (response.destroyed) return;
    response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", choices: [], usage })}\n\n`);
    response.end("data: [DONE]\n\n");
  }
}

/**
 * The number by which the model of a request can cite a file. Which it is depends on what was found
 * before, such as what was said in conversations of earlier tests.
 */
export function numberOf(request: Request, path: string): number {
  for (const { content } of request.messages) {
    const number = content && (numberInText(content, path) ?? numberInResult(content, path));
    if (number) return number;
  }
  throw new Error(`nothing that the model was sent lets it cite ${path}`);
}

/** Of a passage that comes with the question: `[1] notes/a.md:1-4`. */
function numberInText(text: string, path: string): number | undefined {
  const line = text.split("\n").find((line) => /^\[\d+\] /.test(line) && line.includes(path));
  return line ? Number.parseInt(line.slice(1), 10) : undefined;
}

/** Of something in what a tool returned. */
function numberInResult(text: string, path: string): number | undefined {
  let found: number | undefined;
  try {
    JSON.parse(text, (_, value) => {
      if (value?.cite && (value.source?.path ?? value.path) === path) found ??= value.cite;
      return value;
    });
  } catch {
    // A text and no result.
  }
  return found;
}

/** Something that a test lets happen when it wants to. */
export function gate(): { passed: Promise<void>; open: () => void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
