/** Unary calls: `await call("vault.search", { query: "login" })`. */
import { RpcError, unreachable, type WireError } from "./error";
import { session } from "./session.svelte";
import type { Methods } from "./types";

export type MethodName = keyof Methods;
export type Params<M extends MethodName> = Methods[M]["params"];
export type Result<M extends MethodName> = Methods[M]["result"];

interface Answer {
  result?: unknown;
  error?: WireError;
}

let last = 0;

export interface Options {
  signal?: AbortSignal;
  /** Another project than the one that is shown; `null` for none. */
  project?: string | null;
}

/** Calls a method and waits for its result. A failure is a `RpcError`. */
export async function call<M extends MethodName>(
  method: M,
  params: Params<M>,
  options: Options = {},
): Promise<Result<M>> {
  return (await callAny(method, params, options)) as Result<M>;
}

/** The same for a method that is only known at run time. */
export async function callAny(method: string, params: unknown, options: Options = {}): Promise<unknown> {
  const response = await send(method, params, options);
  const answer = await read(response);
  if (answer.error) {
    const error = RpcError.from(answer.error);
    if (error.code === "auth.unauthenticated") session.signOut(error.message);
    throw error;
  }
  return answer.result;
}

async function send(method: string, params: unknown, options: Options): Promise<Response> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  const project = options.project === undefined ? session.project : options.project;
  if (project) headers["x-dodona-project"] = project;
  last += 1;
  try {
    return await fetch("/rpc", {
      method: "POST",
      headers,
      body: JSON.stringify({ jsonrpc: "2.0", id: last, method, params }),
      signal: options.signal ?? null,
    });
  } catch (thrown) {
    if (options.signal?.aborted) throw thrown;
    throw unreachable();
  }
}

async function read(response: Response): Promise<Answer> {
  try {
    return (await response.json()) as Answer;
  } catch {
    throw new RpcError("page.answer", `The server answered with status ${response.status} and no JSON`);
  }
}
