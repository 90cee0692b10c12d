/** An answer that is none: what went wrong, and the next thing to try. */
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
    "The server does not answer",
    "Is `dodona serve` running? The page goes on by itself.",
    true,
  );
