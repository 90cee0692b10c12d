/**
 * The one WebSocket of a tab. It carries streams and nothing else: calls are made over HTTP, where a
 * request can name its project. It is opened when the page starts, and again whenever it is lost.
 */
import { call } from "./call";
import { RpcError, UNREACHABLE, type WireError } from "./error";
import type { Item } from "./items";
import { session } from "./session.svelte";

const FIRST_WAIT = 250;
const LONGEST_WAIT = 5_000;
/** The server closes with this when a token is no longer valid. */
const POLICY = 1008;

interface Reply {
  id?: number;
  result?: unknown;
  error?: WireError;
  method?: string;
  params?: { subscription: string; result: Item };
}

export interface Listener {
  /** Where to go on after a reconnect. */
  after(): number;
  item(item: Item): void;
  failed(error: RpcError): void;
}

const listeners = new Map<string, Listener>();
const waiting = new Map<number, string>();
let socket: WebSocket | null = null;
let wait = FIRST_WAIT;
let last = 0;

/** Keeps a connection from now on. */
export function connect(): void {
  if (socket) return;
  const address = new URL("/rpc", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const opened = new WebSocket(address);
  socket = opened;
  opened.onopen = () => {
    wait = FIRST_WAIT;
    session.online = true;
    for (const stream of listeners.keys()) ask(stream);
  };
  opened.onmessage = (message) => receive(JSON.parse(message.data as string) as Reply);
  opened.onclose = (closed) => lost(closed.code);
}

/** Reads a stream, from where the listener is, also over lost connections and restarts. */
export function listen(stream: string, listener: Listener): () => void {
  listeners.set(stream, listener);
  connect();
  if (socket?.readyState === WebSocket.OPEN) ask(stream);
  return () => {
    if (listeners.get(stream) !== listener) return;
    listeners.delete(stream);
    post("hub.unsubscribe", { subscription: stream });
  };
}

function ask(stream: string): void {
  const after = listeners.get(stream)?.after() ?? 0;
  const id = post("hub.subscribe", { stream_id: stream, after });
  if (id !== null) waiting.set(id, stream);
}

function post(method: string, params: unknown): number | null {
  if (socket?.readyState !== WebSocket.OPEN) return null;
  last += 1;
  socket.send(JSON.stringify({ jsonrpc: "2.0", id: last, method, params }));
  return last;
}

function receive(reply: Reply): void {
  if (reply.method === "hub.item" && reply.params) {
    listeners.get(reply.params.subscription)?.item(reply.params.result);
    return;
  }
  const stream = reply.id === undefined ? undefined : waiting.get(reply.id);
  if (stream === undefined) return;
  waiting.delete(reply.id as number);
  if (reply.error) listeners.get(stream)?.failed(RpcError.from(reply.error));
}

function lost(code: number): void {
  socket = null;
  waiting.clear();
  if (code === POLICY) {
    // Whether it has expired or was revoked, the next answer says.
    void again();
    return;
  }
  session.online = false;
  setTimeout(again, wait);
  wait = Math.min(wait * 2, LONGEST_WAIT);
}

/** A refused upgrade looks like a server that is gone; a call tells which it is. */
async function again(): Promise<void> {
  try {
    await call("hub.health", {}, { project: null });
  } catch (thrown) {
    const error = RpcError.of(thrown);
    if (error.code === "auth.unauthenticated") return;
    if (error.code === UNREACHABLE) {
      setTimeout(again, wait);
      wait = Math.min(wait * 2, LONGEST_WAIT);
      return;
    }
  }
  connect();
}

// A machine that wakes up, or a network that comes back, should not wait for the timer.
addEventListener("online", () => {
  wait = FIRST_WAIT;
  if (!socket) void again();
});
