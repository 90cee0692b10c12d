/** The server, as the page sees it. */
export { call, callAny, type MethodName, type Options, type Params, type Result } from "./call";
export { RpcError, UNREACHABLE } from "./error";
export { events } from "./events.svelte";
export * from "./items";
export { type Loaded, load } from "./load.svelte";
export { session } from "./session.svelte";
export { connect } from "./socket";
export { follow, type Reader, start } from "./stream";
export type * as api from "./types";
