// Visitors who come at a steady pace whatever becomes of the edge, as browsers do: on new connections and on ones that are kept alive, by HTTP, HTTPS and HTTP/2.
// They count who was refused, who was cut off, and how long the slowest waited. A request on a connection that had served before and closes without a byte of
// answer is sent once more on a new one, as each browser does (RFC 9112 §9.3.1, RFC 9113 §8.7).

import { Agent as PlainAgent, request as askPlain, type RequestOptions } from "node:http";
import {
  connect as connectHttp2,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
} from "node:http2";
import { Agent as SecureAgent, request as askSecure } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const tickMs = 20;
/** Who has no answer by then has gone. */
const patienceMs = 30_000;

export type SteadyOptions = {
  readonly host: string;
  readonly port: number;
  /** Unsaid: HTTPS and HTTP/2 are not tried. */
  readonly tlsPort?: number | undefined;
  readonly name: string;
  readonly path: string;
  /** The whole body that a right answer has. */
  readonly body: string;
  /** Requests a second, of all kinds together. */
  readonly perSecond: number;
};

type Kind = "new" | "kept" | "new tls" | "kept tls" | "http/2";

export type VisitorCount = {
  readonly sent: number;
  readonly right: number;
  readonly retried: number;
  readonly longestMs: number;
  /** The longest time for which the visitors themselves did nothing, since their process had too much to do: so much of a wait may be their own. */
  readonly pausedMs: number;
  /** What went wrong, by the words for it. */
  readonly wrong: Readonly<Record<string, number>>;
};

type Outcome = { readonly status: number; readonly body: string };

class Failure extends Error {
  /** Whether a browser sends the request again. */
  readonly mayRetry: boolean;

  constructor(message: string, mayRetry: boolean) {
    super(message);
    this.mayRetry = mayRetry;
  }
}

export class SteadyVisitors {
  readonly #options: SteadyOptions;
  readonly #plain = new PlainAgent({ keepAlive: true, maxSockets: 64 });
  readonly #secure = new SecureAgent({ keepAlive: true, maxSockets: 64, maxCachedSessions: 0 });
  readonly #kinds: readonly Kind[];
  readonly #timer: NodeJS.Timeout;
  readonly #open = new Set<Promise<void>>();
  readonly #beganMs = performance.now();
  #session: ClientHttp2Session | undefined;
  #sent = 0;
  #right = 0;
  #retried = 0;
  #longestMs = 0;
  #pausedMs = 0;
  #tickedMs = performance.now();
  readonly #wrong = new Map<string, number>();

  constructor(options: SteadyOptions) {
    this.#options = options;
    const secure: readonly Kind[] = ["new tls", "kept tls", "http/2"];
    this.#kinds = ["new", "kept", ...(options.tlsPort === undefined ? [] : secure)];
    this.#timer = setInterval(() => this.#tick(), tickMs);
  }

  /** Begins the count anew, with the next visitor. */
  reset(): void {
    [this.#sent, this.#right, this.#retried] = [0, 0, 0];
    [this.#longestMs, this.#pausedMs] = [0, 0];
    this.#wrong.clear();
  }

  get count(): VisitorCount {
    return {
      sent: this.#sent,
      right: this.#right,
      retried: this.#retried,
      longestMs: Math.round(this.#longestMs),
      pausedMs: Math.round(this.#pausedMs),
      wrong: Object.fromEntries(this.#wrong),
    };
  }

  /** Resolves when all that were sent have their answer, or have gone. */
  async end(): Promise<VisitorCount> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
    this.#plain.destroy();
    this.#secure.destroy();
    this.#session?.destroy();
    return this.count;
  }

  #made = 0;

  #tick(): void {
    const nowMs = performance.now();
    this.#pausedMs = Math.max(this.#pausedMs, nowMs - this.#tickedMs - tickMs);
    this.#tickedMs = nowMs;
    const due = ((nowMs - this.#beganMs) / 1_000) * this.#options.perSecond;
    for (; this.#made < due; this.#made++) {
      const visit = this.#visit(this.#kinds[this.#made % this.#kinds.length] ?? "new");
      this.#open.add(visit);
      void visit.finally(() => this.#open.delete(visit));
    }
  }

  async #visit(kind: Kind): Promise<void> {
    this.#sent++;
    const beganMs = performance.now();
    try {
      const { status, body } = await this.#ask(kind).catch((error: unknown) => {
        if (!(error instanceof Failure) || !error.mayRetry) throw error;
        this.#retried++;
        return this.#ask(kind, true);
      });
      if (status === 200 && body === this.#options.body) this.#right++;
      else this.#note(`${kind}: ${status} ${body.slice(0, 40)}`);
    } catch (error) {
      this.#note(`${kind}: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.#longestMs = Math.max(this.#longestMs, performance.now() - beganMs);
  }

  #note(what: string): void {
    this.#wrong.set(what, (this.#wrong.get(what) ?? 0) + 1);
  }

  async #ask(kind: Kind, anew = false): Promise<Outcome> {
    if (kind === "http/2") return this.#askHttp2(anew);
    const isSecure = kind.endsWith("tls");
    const { host, port, tlsPort, name, path } = this.#options;
    const kept = kind.startsWith("kept") && !anew ? (isSecure ? this.#secure : this.#plain) : false;
    const options: RequestOptions = {
      host,
      port: isSecure ? tlsPort : port,
      path,
      agent: kept,
      timeout: patienceMs,
      headers: { host: name, "user-agent": browser },
    };
    const secured = { ...options, servername: name, rejectUnauthorized: false };
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const request = isSecure ? askSecure(secured) : askPlain(options);
    let answered = false;
    const fail = (error: Error & { code?: string }): void =>
      reject(new Failure(error.code ?? error.message, request.reusedSocket && !answered));
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", fail);
    request.on("response", (response) => {
      answered = true;
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => (body += text));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      response.on("error", fail);
    });
    request.end();
    return promise;
  }

  async #askHttp2(anew: boolean): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    const session = this.#http2Session(anew);
    const isReused = !session.connecting;
    const { name, path } = this.#options;
    const fields = { ":path": path, ":authority": name, "user-agent": browser };
    let stream: ClientHttp2Stream;
    try {
      stream = session.request(fields);
    } catch (error) {
      throw new Failure(error instanceof Error ? error.message : String(error), !anew);
    }
    let status = 0;
    let body = "";
    const fail = (why: string, mayRetry: boolean): void =>
      reject(new Failure(why, mayRetry && status === 0));
    stream.setEncoding("utf8");
    stream.setTimeout(patienceMs, () => stream.destroy(new Error("no answer")));
    stream.on("response", (answer) => (status = answer[":status"] ?? 0));
    stream.on("data", (text: string) => (body += text));
    // A server that says so has not looked at the request (RFC 9113 §8.7).
    const isRefused = (): boolean => stream.rstCode === constants.NGHTTP2_REFUSED_STREAM;
    stream.on("error", (error: Error & { code?: string }) =>
      fail(`${error.code ?? error.message} ${stream.rstCode}`, isReused || isRefused()),
    );
    stream.on("close", () => {
      const { rstCode } = stream;
      if (status !== 0 && rstCode === constants.NGHTTP2_NO_ERROR) resolve({ status, body });
      else fail(`stream closed with ${rstCode}`, isReused || isRefused());
    });
    return promise;
  }

  #http2Session(anew: boolean): ClientHttp2Session {
    const usable = this.#session;
    if (!anew && usable !== undefined && !usable.closed && !usable.destroyed) return usable;
    const { host, tlsPort, name } = this.#options;
    const options = { servername: name, rejectUnauthorized: false };
    const session = connectHttp2(`https://${host}:${tlsPort}`, options);
    session.on("goaway", () => {
      if (this.#session === session) this.#session = undefined;
      session.close();
    });
    session.on("error", () => {
      if (this.#session === session) this.#session = undefined;
    });
    this.#session = session;
    return session;
  }
}

/** Counts visitors who come all the time, while something is done, and a second before and after. Says the count. */
export async function countDuring(
  options: Pick<SteadyOptions, "port" | "tlsPort" | "name" | "body">,
  action: () => Promise<void>,
): Promise<VisitorCount> {
  const visitors = new SteadyVisitors({ host: "127.0.0.1", path: "/", perSecond: 100, ...options });
  await sleep(1_000);
  try {
    await action();
    await sleep(1_000);
  } finally {
    await visitors.end();
  }
  const { count } = visitors;
  process.stdout.write(`visitors: ${JSON.stringify(count)}\n`);
  if (count.sent < 100) throw new Error("hardly anybody came");
  return count;
}
