// Reads a form (`multipart/form-data`, RFC 7578, RFC 2046 §5.1) part by part while it arrives, whatever its
// size. Only heads are held in memory.

export type FormPart = {
  readonly name: string;
  readonly fileName: string | undefined;
  /**
   * The content of the part; it must be read before the next part is asked for, and what is left of it is
   * passed over.
   */
  readonly content: AsyncGenerator<Buffer, void, undefined>;
};

/** Says that the body is no form. Any other error comes from the connection. */
export class FormFault extends Error {}

const headBytesMax = 8_192;
const preambleBytesMax = 1_024;
const lineEnd = Buffer.from("\r\n");
const headEnd = Buffer.from("\r\n\r\n");

/** Returns the boundary, or undefined for another type, or one without a boundary. */
export function formBoundary(contentType: string): string | undefined {
  if (!/^multipart\/form-data\s*;/i.test(contentType)) return undefined;
  const found = /;\s*boundary=(?:"([^"\r\n]{1,70})"|([\w'()+,\-./:=?]{1,70}))\s*(?:;|$)/i.exec(
    contentType,
  );
  return found?.[1] ?? found?.[2];
}

export class FormStream {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #boundary: Buffer;
  /**
   * Bytes not yet parsed. They begin with a line end, as if the first boundary had a line before it like the
   * others.
   */
  #held: Buffer = Buffer.from(lineEnd);

  constructor(bytes: AsyncIterable<Uint8Array>, boundary: string) {
    this.#source = bytes[Symbol.asyncIterator]();
    this.#boundary = Buffer.from(`\r\n--${boundary}`, "latin1");
  }

  /** Yields the parts. Throws FormFault, and what the source throws. */
  async *parts(): AsyncGenerator<FormPart, void, undefined> {
    await this.#collect(this.#boundary, preambleBytesMax);
    while (!(await this.#isEnd())) {
      if (!/^[ \t]*$/.test(await this.#collect(lineEnd, headBytesMax)))
        throw new FormFault("a boundary is followed by something else");
      this.#held = Buffer.concat([lineEnd, this.#held]);
      const head = await this.#collect(headEnd, headBytesMax);
      const content = this.#until(this.#boundary);
      yield { ...disposition(head), content };
      for await (const rest of content) void rest;
    }
  }

  async #isEnd(): Promise<boolean> {
    while (this.#held.length < 2) if (!(await this.#fill())) throw new FormFault("ends too early");
    return this.#held.toString("latin1", 0, 2) === "--";
  }

  /** Yields the bytes up to the mark, which is passed over. */
  async *#until(mark: Buffer): AsyncGenerator<Buffer, void, undefined> {
    for (;;) {
      const at = this.#held.indexOf(mark);
      const take = at >= 0 ? at : Math.max(0, this.#held.length - mark.length + 1);
      const taken = this.#held.subarray(0, take);
      this.#held = this.#held.subarray(at >= 0 ? at + mark.length : take);
      if (taken.length > 0) yield taken;
      if (at >= 0) return;
      if (!(await this.#fill())) throw new FormFault("ends too early");
    }
  }

  async #collect(mark: Buffer, bytesMax: number): Promise<string> {
    let text = "";
    for await (const part of this.#until(mark)) {
      text += part.toString("latin1");
      if (text.length > bytesMax) throw new FormFault("a head is too long");
    }
    return Buffer.from(text, "latin1").toString("utf8");
  }

  async #fill(): Promise<boolean> {
    const next = await this.#source.next();
    if (next.done === true) return false;
    this.#held = Buffer.concat([this.#held, next.value]);
    return true;
  }
}

/** Reads name and file name, in UTF-8, as browsers and curl send them: quotes are escaped by `\` or `%22`. */
function disposition(head: string): {
  readonly name: string;
  readonly fileName: string | undefined;
} {
  const value = /^content-disposition:[ \t]*form-data[ \t]*(;.*)$/im.exec(head)?.[1];
  if (value === undefined) throw new FormFault("a part has no name");
  const parameter = (name: string): string | undefined => {
    const found = new RegExp(`;[ \\t]*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s"]+))`, "i").exec(
      value,
    );
    return (found?.[1]?.replaceAll(/\\(.)/g, "$1") ?? found?.[2])?.replaceAll("%22", '"');
  };
  const name = parameter("name");
  if (name === undefined) throw new FormFault("a part has no name");
  return { name, fileName: parameter("filename") };
}
