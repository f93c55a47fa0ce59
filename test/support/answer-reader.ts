// Reads answers of HTTP/1.1 off a connection as they come, strictly: an answer that ends where its head does not say so is a fault, not an answer.

export type ReadAnswer = {
  readonly status: number;
  /** Status line and fields as sent, each line with its end. */
  readonly head: string;
  /** One character a byte, without what its framing adds. */
  readonly body: string;
  /** The connection ends with it. */
  readonly isLast: boolean;
};

const statusLine = /^HTTP\/1\.1 ([1-5]\d\d) [\t -~]*\r\n/;
const fieldLines = /^(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t -~\u0080-\u00ff]*\r\n)*$/;

export class AnswerReader {
  readonly answers: ReadAnswer[] = [];
  /** Says what is wrong with the bytes; nothing is read behind it. */
  fault: string | undefined;
  #text = "";
  /** Of the requests whose answers have not come. */
  readonly #methods: string[] = [];

  expect(method: string): void {
    this.#methods.push(method);
  }

  /** How many answers are owed. */
  get owed(): number {
    return this.#methods.length;
  }

  /** Takes more bytes, one character a byte. */
  take(text: string): void {
    this.#text += text;
    while (this.fault === undefined && this.#text !== "" && this.#readOne());
  }

  /** The connection has ended. */
  end(): void {
    if (this.#text !== "" && this.fault === undefined)
      this.fault = `the connection ended within an answer: ${JSON.stringify(this.#text.slice(0, 200))}`;
  }

  #readOne(): boolean {
    const headEnd = this.#text.indexOf("\r\n\r\n");
    if (headEnd < 0) return false;
    const head = this.#text.slice(0, headEnd + 2);
    const [line = "", said] = statusLine.exec(head) ?? [];
    if (said === undefined || !fieldLines.test(head.slice(line.length)))
      return this.#fail(`no head of an answer: ${JSON.stringify(head.slice(0, 300))}`);
    const status = Number(said);
    if (status < 200) {
      this.#take(headEnd + 4, { status, head, body: "", isLast: false });
      return true;
    }
    const [method] = this.#methods;
    if (method === undefined) return this.#fail(`an answer to nothing: ${head}`);
    const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
    const found = hasBody ? this.#bodyFrom(head, headEnd + 4) : { body: "", end: headEnd + 4 };
    if (found === undefined) return false;
    this.#methods.shift();
    const isLast = fieldOf(head, "connection")?.toLowerCase() === "close";
    this.#take(found.end, { status, head, body: found.body, isLast });
    return true;
  }

  #bodyFrom(head: string, from: number): { body: string; end: number } | undefined {
    const length = fieldOf(head, "content-length");
    const coding = fieldOf(head, "transfer-encoding");
    if ((length === undefined) === (coding === undefined)) {
      this.#fail(`the head says no length, or two: ${head}`);
      return undefined;
    }
    if (length === undefined) return this.#chunksFrom(from);
    const end = from + Number(length);
    return end > this.#text.length ? undefined : { body: this.#text.slice(from, end), end };
  }

  #chunksFrom(from: number): { body: string; end: number } | undefined {
    let [body, at] = ["", from];
    for (;;) {
      const lineEnd = this.#text.indexOf("\r\n", at);
      if (lineEnd < 0) return undefined;
      const size = this.#text.slice(at, lineEnd);
      if (!/^[0-9a-f]+$/i.test(size)) {
        this.#fail(`no size of a chunk: ${JSON.stringify(size.slice(0, 80))}`);
        return undefined;
      }
      const [start, bytes] = [lineEnd + 2, Number.parseInt(size, 16)];
      if (start + bytes + 2 > this.#text.length) return undefined;
      if (!this.#text.startsWith("\r\n", start + bytes)) {
        this.#fail("a chunk does not end where it says");
        return undefined;
      }
      at = start + bytes + 2;
      if (bytes === 0) return { body, end: at };
      body += this.#text.slice(start, start + bytes);
    }
  }

  #take(end: number, answer: ReadAnswer): void {
    this.#text = this.#text.slice(end);
    this.answers.push(answer);
  }

  #fail(what: string): false {
    this.fault ??= what;
    return false;
  }
}

/** The value of a field, whose name is in lower case; several are one list. */
function fieldOf(head: string, name: string): string | undefined {
  const values = head
    .split("\r\n")
    .slice(1)
    .flatMap((line) => {
      const colon = line.indexOf(":");
      return line.slice(0, colon).toLowerCase() === name ? line.slice(colon + 1).trim() : [];
    });
  return values.length === 0 ? undefined : values.join(", ");
}
