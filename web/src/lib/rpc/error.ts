/** A failed call: what went wrong, and what to try next. */
export class RpcError extends Error {
  constructor(
    /** The stable, dotted code: `auth.unauthenticated`. */
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly retryable = false,
    /** Particulars, such as `problems`. */
    readonly data: unknown = undefined,
  ) {
    super(message);
    this.name = "RpcError";
  }

  /** Reads the error object of a JSON-RPC answer. */
  static from(error: WireError): RpcError {
    const data = error.data;
    return new RpcError(
      data?.code ?? `rpc.${error.code}`,
      error.message,
      data?.hint ?? null,
      data?.retryable ?? false,
      data?.data,
    );
  }

  /** Makes an error of whatever was thrown. */
  static of(thrown: unknown): RpcError {
    if (thrown instanceof RpcError) return thrown;
    return new RpcError("page.error", thrown instanceof Error ? thrown.message : String(thrown));
  }
}

export interface WireError {
  code: number;
  message: string;
  data?: { code?: string; hint?: string | null; retryable?: boolean; data?: unknown };
}

/** The server could not be reached. */
export const UNREACHABLE = "page.unreachable";

export const unreachable = (): RpcError =>
  new RpcError(
    UNREACHABLE,
    "Connection to the server lost",
    "Start it with `dodona serve`. The page reconnects by itself.",
    true,
  );
