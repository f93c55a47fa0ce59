// Many addresses behind one trusted proxy: whose turn it is, what an exact bucket says of each request, and what the server said. A request at a time on each
// connection, over sockets that cost little.

import { connect, type Socket } from "node:net";
import { host, trustedProxy } from "../serving/cases.ts";

export type Rule = { readonly rate: number; readonly burst: number };

export type Said = {
  readonly requests: number;
  readonly seconds: number;
  /** Of addresses that keep below the rule. */
  readonly honest: { readonly asked: number; readonly refused: number };
  /** Of addresses that ask far too often. */
  readonly greedy: { readonly asked: number; readonly letIn: number };
};

export type Crowd = {
  readonly honest: number;
  readonly greedy: number;
  /** The share of all requests that the greedy ones send. */
  readonly greedyShare: number;
};

const crlf2 = "\r\n\r\n";

/** The `no`th address: honest ones are of 10.0.0.0/8, greedy ones of 172.16.0.0/12. */
export function addressOf(no: number, isGreedy: boolean): string {
  const [first, second] = isGreedy ? [172, 16] : [10, (no >>> 16) & 255];
  return `${first}.${second}.${(no >>> 8) & 255}.${no & 255}`;
}

export function requestOf(path: string, address: string, on = host): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${on}\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\nAccept: */*\r\nX-Forwarded-For: ${address}\r\n\r\n`;
}

/** One connection; answers are whole when their Content-Length says so. */
class Visit {
  readonly #socket: Socket;
  #text = "";
  #told: ((status: number) => void) | undefined;
  #fail: ((error: Error) => void) | undefined;

  constructor(port: number) {
    this.#socket = connect({ port, host: "127.0.0.1", localAddress: trustedProxy });
    this.#socket.setNoDelay(true).setEncoding("latin1");
    this.#socket.on("data", (chunk: string) => this.#read(chunk));
    this.#socket.on("error", (error) => this.#fail?.(error));
    this.#socket.on("close", () => this.#fail?.(new Error("the server closed the connection")));
  }

  async ask(request: string): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.#told = resolve;
    this.#fail = reject;
    this.#socket.write(request, "latin1");
    return promise;
  }

  close(): void {
    this.#fail = undefined;
    this.#socket.destroy();
  }

  #read(chunk: string): void {
    this.#text = this.#text === "" ? chunk : this.#text + chunk;
    const end = this.#text.indexOf(crlf2);
    if (end < 0) return;
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(this.#text)?.[1] ?? 0);
    if (this.#text.length < end + crlf2.length + length) return;
    const status = Number(this.#text.slice(9, 12));
    this.#text = "";
    this.#told?.(status);
  }
}

/** Asks from one address, or from each of so many in turn, in a closed loop. Returns how many answers had the status, and how many another one. */
export async function askAll(
  port: number,
  requests: (no: number) => string,
  {
    connections,
    seconds,
    status,
  }: { readonly connections: number; readonly seconds: number; readonly status: number },
): Promise<{ readonly expected: number; readonly others: number }> {
  const untilMs = performance.now() + seconds * 1_000;
  let [no, expected, others] = [0, 0, 0];
  const one = async (): Promise<void> => {
    const visit = new Visit(port);
    while (performance.now() < untilMs) {
      if ((await visit.ask(requests(no++))) === status) expected++;
      else others++;
    }
    visit.close();
  };
  await Promise.all(Array.from({ length: connections }, one));
  return { expected, others };
}

/** Asks so often in a second, from addresses that are drawn by chance. */
export async function crowdAsks(
  port: number,
  path: string,
  crowd: Crowd,
  {
    connections,
    seconds,
    perSecond,
  }: { readonly connections: number; readonly seconds: number; readonly perSecond: number },
): Promise<Said> {
  const honest = { asked: 0, refused: 0 };
  const greedy = { asked: 0, letIn: 0 };
  const idle = Array.from({ length: connections }, () => new Visit(port));
  const began = performance.now();
  let [sent, answered] = [0, 0];
  const ask = async (visit: Visit): Promise<void> => {
    const isGreedy = Math.random() < crowd.greedyShare;
    const no = Math.floor(Math.random() * (isGreedy ? crowd.greedy : crowd.honest));
    const status = await visit.ask(requestOf(path, addressOf(no, isGreedy)));
    if (status !== 200 && status !== 429) throw new Error(`answered ${status}`);
    answered++;
    if (isGreedy) greedy.asked++;
    else honest.asked++;
    if (isGreedy && status === 200) greedy.letIn++;
    if (!isGreedy && status === 429) honest.refused++;
    idle.push(visit);
  };
  const { promise: done, resolve, reject } = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    const passed = (performance.now() - began) / 1_000;
    const due = Math.floor(Math.min(passed, seconds) * perSecond);
    for (let visit = idle.pop(); visit !== undefined && sent < due; visit = idle.pop()) {
      sent++;
      ask(visit).catch(reject);
      if (sent === due) break;
    }
    if (passed >= seconds && answered === sent) resolve();
  }, 1);
  await done;
  clearInterval(timer);
  for (const visit of idle) visit.close();
  return { requests: answered, seconds: (performance.now() - began) / 1_000, honest, greedy };
}
