/** Streams: started by a call, read by anybody who knows their id, as often as they like. */
import { callAny, type MethodName, type Params } from "./call";
import type { RpcError } from "./error";
import { type Item, isDone } from "./items";
import { listen } from "./socket";

export interface Reader {
  item(item: Item): void;
  /** The stream has ended; nothing more comes. */
  ended?(): void;
  /** The stream cannot be read: it is not known any more, or not ours. */
  failed?(error: RpcError): void;
}

/** Starts a call that runs to its end whether anybody reads it or not, and names its stream. */
export async function start<M extends MethodName>(method: M, params: Params<M>): Promise<string> {
  const started = await callAny("hub.subscribe", { method, params, detached: true });
  return (started as { stream_id: string }).stream_id;
}

/** One stream as this tab knows it. Several views may read it; the wire carries it once. */
class Channel {
  readonly items: Item[] = [];
  readonly readers = new Set<Reader>();
  ended = false;
  stop: () => void = () => {};

  constructor(readonly id: string) {
    this.stop = listen(id, {
      after: () => this.items.at(-1)?.seq ?? 0,
      item: (item) => this.take(item),
      failed: (error) => {
        for (const reader of this.readers) reader.failed?.(error);
      },
    });
  }

  private take(item: Item): void {
    // After a reconnect the server goes on where we said; whatever we have already is not news.
    if (item.seq <= (this.items.at(-1)?.seq ?? 0)) return;
    this.items.push(item);
    for (const reader of this.readers) reader.item(item);
    // The root's `done` is the last item of a stream; a root's call id is the stream's.
    if (isDone(item) && item.call_id === this.id) this.end();
  }

  private end(): void {
    this.ended = true;
    this.stop();
    for (const reader of this.readers) reader.ended?.();
  }
}

const channels = new Map<string, Channel>();

/** Reads a stream from its beginning, and goes on as items come. The answer stops the reading, not the call. */
export function follow(stream: string, reader: Reader): () => void {
  let channel = channels.get(stream);
  if (!channel) {
    channel = new Channel(stream);
    channels.set(stream, channel);
  }
  const read = channel;
  for (const item of read.items) reader.item(item);
  if (read.ended) {
    reader.ended?.();
    return () => {};
  }
  read.readers.add(reader);
  return () => {
    read.readers.delete(reader);
    if (read.readers.size > 0) return;
    read.stop();
    channels.delete(stream);
  };
}
