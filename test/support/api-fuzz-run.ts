// Odd requests sent and judged: none fails inside, none hangs, none is told of what is inside, every refusal is what the document says.

import { Agent, request as httpRequest } from "node:http";
import type { Contract, Exchange } from "./api-contract.ts";
import type { OddRequest } from "./api-fuzz.ts";

/** On a machine that does other things too; alone the slowest answer takes a tenth of it. */
const slowMs = 10_000;

/** Words of the inside: stacks, SQL, paths, names of files. */
const inside =
  /\bat [\w.<>]+ \(|\.[jt]s:\d+|node_modules|node:internal|SQLITE_|SqliteError|\b(?:TypeError|RangeError|SyntaxError|ReferenceError)\b|\bselect .+ from\b|\binsert into\b|no such (?:table|column)|\/tmp\/|central\.db|\$(?:argon2id|scrypt)\$/i;

export type Judged = {
  readonly status: number;
  readonly ms: number;
  /** Empty: as it should be. */
  readonly faults: readonly string[];
};

export type Sender = Disposable & {
  send(request: OddRequest): Promise<Judged>;
};

export function openSender(port: number, contract: Contract): Sender {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  return {
    send: async (request) => {
      const startedMs = performance.now();
      const answer = await exchange(agent, port, request);
      const ms = performance.now() - startedMs;
      return { status: answer.status, ms, faults: faultsOf(request, answer, ms, contract) };
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}

type Received = Omit<Exchange, "method" | "path"> & { readonly text: string };

async function exchange(agent: Agent, port: number, odd: OddRequest): Promise<Received> {
  const { promise, resolve, reject } = Promise.withResolvers<Received>();
  const { method, path, headers, body } = odd;
  const length = body === undefined ? {} : { "content-length": String(body.length) };
  const request = httpRequest(
    { agent, host: "127.0.0.1", port, method, path, headers: { ...headers, ...length } },
    (response) => {
      const chunks: Buffer[] = [];
      const isStream = response.headers["content-type"] === "text/event-stream";
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        // A stream has no end of its own; its beginning is the answer.
        if (isStream) request.destroy();
      });
      response.on("error", (error) => (isStream ? undefined : reject(error)));
      response.on(isStream ? "close" : "end", () => {
        const text = Buffer.concat(chunks).toString("utf8");
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: parsed(text),
          text: JSON.stringify(response.headers) + text,
        });
      });
    },
  );
  request.setTimeout(slowMs, () => request.destroy(new Error("no answer in time")));
  request.on("error", reject);
  request.end(body);
  return promise;
}

function parsed(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return { unparsed: text.slice(0, 500) };
  }
}

function faultsOf(odd: OddRequest, answer: Received, ms: number, contract: Contract): string[] {
  const { method, path } = odd;
  const sent = decodeURIComponentSafely(path) + Buffer.from(odd.body ?? "").toString("utf8");
  const leak = inside.exec(answer.text)?.[0];
  return [
    ...(answer.status >= 500 ? [`failed with ${answer.status}`] : []),
    ...(leak === undefined || sent.includes(leak) ? [] : [`tells of the inside: ${leak}`]),
    ...(ms > slowMs ? [`took ${Math.round(ms)} ms`] : []),
    ...contract.faults({ method, path, ...answer }),
  ];
}

function decodeURIComponentSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** For people: what was sent and what was wrong. */
export function describeOdd({ method, path, headers, body, of }: OddRequest): string {
  const shown = Buffer.from(body ?? "")
    .toString("utf8")
    .slice(0, 400);
  return `${of}: ${method} ${path.slice(0, 400)} ${JSON.stringify(headers)} ${shown}`;
}
