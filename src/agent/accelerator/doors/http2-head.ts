// The head of an answer as HTTP/2 says it: names in lower case, and nothing of a connection.

/** They speak of a connection of HTTP/1.1 and make an answer of HTTP/2 malformed (RFC 9113 §8.2.2). */
export const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** `HTTP/1.1 200 OK` and the empty line, with their line ends. */
const statusLineBytes = 19;
/** Colon, space, line end. */
const fieldSignsBytes = 4;

/** It is made when it is first asked for: most answers go out over HTTP/1.1. */
export class Http2Head {
  readonly #status: number;
  readonly #fields: readonly string[];
  #list: string[] | undefined;
  #bytes = statusLineBytes;

  /** `fields` are names and values in turn. */
  constructor(status: number, fields: readonly string[]) {
    this.#status = status;
    this.#fields = fields;
  }

  /** For `respond`, which adds a date where there is none: one without is to be sent once. */
  get list(): string[] {
    return (this.#list ??= this.#make());
  }

  /** The head as HTTP/1.1 would say it: what it takes packed depends on what was packed before. */
  get bytes(): number {
    this.#list ??= this.#make();
    return this.#bytes;
  }

  #make(): string[] {
    const fields = this.#fields;
    const list = [":status", String(this.#status)];
    for (let at = 0; at + 1 < fields.length; at += 2) {
      const name = fields[at]?.toLowerCase() ?? "";
      const value = fields[at + 1] ?? "";
      if (connectionFields.has(name)) continue;
      list.push(name, value);
      this.#bytes += name.length + value.length + fieldSignsBytes;
    }
    return list;
  }
}

/** For `respond`: the frame of the head ends the stream. */
export const headAlone = { endStream: true } as const;
