// The origin of the leak hunt: one server for all applications, on several ports. A site's editions of rules name one port after another, so the port tells under which rules
// the agent asked.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { pageOf, type Application, type Page } from "./leaks-applications.ts";
import { Chance } from "./leaks-random.ts";
import type { Made, Records } from "./leaks-records.ts";
import { readCookies, type Edition } from "./leaks-rules.ts";

const portsCount = 8;
const failsShare = 0.01;
const silentShare = 0.3;

export class LeakOrigin implements AsyncDisposable {
  readonly #servers: readonly Server[];
  readonly #records: Records;
  readonly #applications: ReadonlyMap<string, Application>;
  /** By domain and port. */
  readonly #editions = new Map<string, Edition>();
  readonly #chance: Chance;

  private constructor(
    records: Records,
    applications: ReadonlyMap<string, Application>,
    seed: number,
  ) {
    this.#records = records;
    this.#applications = applications;
    this.#chance = Chance.of(seed, -1);
    this.#servers = Array.from({ length: portsCount }, () =>
      createServer((request, response) => {
        void this.#answer(request, response).catch((error: unknown) =>
          response.destroy(error instanceof Error ? error : undefined),
        );
      }),
    );
  }

  /** `applications` are found by domain and path, and may change. */
  static async start(
    records: Records,
    applications: ReadonlyMap<string, Application>,
    seed: number,
  ): Promise<LeakOrigin> {
    const origin = new LeakOrigin(records, applications, seed);
    for (const server of origin.#servers) {
      const { promise, resolve } = Promise.withResolvers<void>();
      server.listen(0, "127.0.0.1", resolve);
      await promise;
    }
    return origin;
  }

  /** Returns the URL for the devlove that brings this edition. Overwrites the one of eight editions before. */
  urlFor(domain: string, edition: Edition): string {
    const address = this.#servers[edition.no % portsCount]?.address();
    if (typeof address !== "object" || address === null) throw new Error("the origin has no port");
    const { port } = address;
    this.#editions.set(`${domain} ${port}`, edition);
    return `http://127.0.0.1:${port}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [askedMs, askedWallMs] = [performance.now(), Date.now()];
    const [path = "", ...rest] = (request.url ?? "").split("?");
    const query = rest.join("?");
    const domain = request.headers.host ?? "";
    const application = this.#applications.get(`${domain}${path}`);
    request.resume();
    if (application === undefined) {
      response.writeHead(404, { "Cache-Control": "no-store" }).end();
      return;
    }
    const edition = this.#editions.get(`${domain} ${request.socket.localPort}`);
    if (edition === undefined) throw new Error(`no edition of ${domain}`);
    const fields = new Map(
      Object.entries(request.headers).map(([name, value]): [string, string] => [
        name,
        String(value),
      ]),
    );
    const cookie = request.headers.cookie ?? "";
    const no = this.#records.next();
    const turn = this.#records.at(domain, path).length;
    const page = pageOf(application, { fields, cookie, query }, no, turn);
    const { status, isSilent } = this.#statusOf(request, application, page);
    const made: Made = {
      no,
      edition: edition.no,
      who: Number(fields.get("x-who")),
      domain,
      scheme: fields.get("x-forwarded-proto") === "https" ? "https" : "http",
      method: request.method ?? "",
      path,
      query,
      hasLoneMark: rest.length > 0 && query === "",
      fields,
      cookies: readCookies(cookie),
      askedMs,
      askedWallMs,
      answeredMs: askedMs + application.delayMs,
      type: application.type,
      status,
      meaning: isSilent ? undefined : page.meaning,
      vary: isSilent ? [] : page.vary,
      setsCookies: isSilent ? [] : page.setsCookies,
      said: page.fields,
      body: page.body,
    };
    // In place before anybody can have the answer.
    this.#records.add(made);
    if (application.delayMs > 0) await sleep(application.delayMs);
    send(request, response, made, isSilent ? silent(page) : page);
  }

  #statusOf(
    request: IncomingMessage,
    { validator, changes }: Application,
    { status, etag }: Page,
  ): { readonly status: number; readonly isSilent: boolean } {
    if (this.#chance.is(failsShare)) return { status: 503, isSilent: false };
    if (status !== 200 || request.method === "POST") return { status, isSilent: false };
    const said = request.headers["if-none-match"];
    const isSame =
      etag !== undefined
        ? said?.includes(etag) === true
        : validator === "date" && request.headers["if-modified-since"] !== undefined;
    // Whose words change says them each time, so that it is known which hold.
    if (isSame)
      return { status: 304, isSilent: changes === "nothing" && this.#chance.is(silentShare) };
    const ofRange = [200, 206, 206, 400, 416] as const;
    return {
      status: request.headers.range === undefined ? 200 : this.#chance.pick(ofRange),
      isSilent: false,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }
}

/** A 304 that repeats nothing but the tag. */
function silent(page: Page): Page {
  return {
    ...page,
    fields: page.fields.filter(([name]) => ["ETag", "Last-Modified", "X-Made"].includes(name)),
  };
}

const partBytes = 10;

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, body }: Made,
  { fields }: Page,
): void {
  const hasBody = status !== 304 && request.method !== "HEAD";
  const part = status === 206 ? body.slice(0, partBytes) : body;
  const length: readonly (readonly [string, string])[] =
    status === 304 ? [] : [["Content-Length", String(part.length)]];
  const range: readonly (readonly [string, string])[] =
    status === 206 ? [["Content-Range", `bytes 0-${part.length - 1}/${body.length}`]] : [];
  // In pairs behind one another: some fields come several times, and capitals count.
  response.writeHead(status, [...fields, ...length, ...range].flat());
  response.end(hasBody ? part : undefined);
}
