// A visitor's body on its way to the origin, no larger than the site allows.

import type { Exchange } from "./exchange.ts";

export class BodyTooLarge extends Error {
  constructor(bytesMax: number) {
    super(`The body of a request to this site may have ${bytesMax} bytes at most.`);
  }
}

export type RequestBody = {
  /** To be called when the origin's connection is there. Throws BodyTooLarge at the byte after the last allowed one. */
  readonly read: () => AsyncGenerator<Uint8Array>;
  readonly isTooLarge: () => boolean;
};

/** Undefined: the request has none. */
export function requestBody(exchange: Exchange, bytesMax: number): RequestBody | undefined {
  if (!exchange.hasBody) return undefined;
  let received = 0;
  async function* read(): AsyncGenerator<Uint8Array> {
    if (exchange.awaitsContinue) exchange.response.writeContinue();
    // The request outlives this reader: the answer still has to go out on its socket.
    for await (const chunk of exchange.request.iterator({ destroyOnReturn: false })) {
      // An HTTP request gives buffers; its type says any.
      const bytes = chunk as Uint8Array;
      received += bytes.length;
      if (received > bytesMax) throw new BodyTooLarge(bytesMax);
      yield bytes;
    }
  }
  return { read, isTooLarge: () => received > bytesMax };
}
