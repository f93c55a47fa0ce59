// Many visitors at once, most with a session, before origins that answer some of them personally: random walks over what origins say, errors, clears and
// time. Nobody ever gets what was made for another, what was read before a clear that he came after, or what is older than the rules allow. Some come over
// the lane, some on connections that node:http has, some by HTTP/2.

import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { ask, Edge, openOrigin, stateOf, type Asked, type EdgeParts } from "./edge.ts";
import { plantedFaults } from "./same-answer/planted.ts";
import { installed, tableOf, visitByHttp2, type Http2Visitor } from "./secure-clients.ts";
import type {
  Flight,
  FlightDeps,
  FlightPlan,
} from "../../../src/agent/accelerator/cached/flight.ts";
import { Flights } from "../../../src/agent/accelerator/cached/flights.ts";
import type { Entry } from "../../../src/agent/cache/entry.ts";

const lifeS = 10;
const whileS = 20;
const ifErrorS = 40;
const pages = 6;
/** Of this one the rule ignores cookies that the origin sets: what comes with one is then for anybody. */
const openPage = 3;
/** Of these the rule says how long they last. */
const ruledPages = [4, 5];

/** What the origin does with a page. */
const policies = [
  "public",
  "validated",
  "private",
  "no-store",
  "cookie",
  "vary",
  "silent",
  "dated",
  "asked-each-time",
  "credentials",
  "trouble",
  "cut",
] as const;
type Policy = (typeof policies)[number];

/** The body of every answer of the origin. */
type Made = {
  readonly page: number;
  /** Whom it is for; null: anybody. */
  readonly session: string | null;
  /** When it was read at the origin: clears before it, seconds. */
  readonly clears: number;
  readonly atS: number;
  /** It may be confirmed later, so that its age says nothing. */
  readonly isConfirmable: boolean;
  /** Who has a session gets no other than his own. */
  readonly isPersonal: boolean;
  /** It is as it is at this moment. */
  readonly isMomentary: boolean;
};

/** How a visitor comes. A field of hops makes node:http read his request. */
const ways = ["lane", "lane", "node", "http2"] as const;
const wishes = ["", "", "", "no-cache", "no-store", "max-age=5", "only-if-cached", "max-age=0"];
const visit = fc.record({
  page: fc.nat(pages - 1),
  session: fc.constantFrom("", "1", "2", "3"),
  isMeasured: fc.boolean(),
  method: fc.constantFrom("GET", "GET", "GET", "HEAD"),
  wish: fc.constantFrom(...wishes),
  isAuthorized: fc.constantFrom(false, false, true),
  isRanged: fc.constantFrom(false, false, false, true),
  way: fc.constantFrom(...ways),
  /** Asks for nothing but the page. */
  isPlain: fc.constantFrom(true, true, false),
});
type VisitStep = typeof visit extends fc.Arbitrary<infer V> ? V : never;
const step = fc.oneof(
  { weight: 8, arbitrary: fc.array(visit, { minLength: 1, maxLength: 6 }) },
  {
    weight: 4,
    arbitrary: fc.record({ page: fc.nat(pages - 1), policy: fc.constantFrom(...policies) }),
  },
  { weight: 3, arbitrary: fc.record({ passS: fc.constantFrom(3, 9, 12, 25, 45) }) },
  { weight: 1, arbitrary: fc.record({ clears: fc.nat(pages - 1) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** With the name of whom it greets. */
const personal: ReadonlySet<Policy> = new Set(["silent", "dated", "asked-each-time"]);

class Scene {
  readonly edge: Edge;
  /** Page → policy; fresh pages for each walk. */
  readonly policies: Policy[] = [];
  clears = 0;
  walk = 0;
  served = 0;
  stale = 0;
  #tick = 0;
  readonly #http2: Http2Visitor;

  readonly #landing: ReadonlySet<Promise<unknown>>;

  constructor(edge: Edge, http2: Http2Visitor, landing: ReadonlySet<Promise<unknown>>) {
    this.edge = edge;
    this.#http2 = http2;
    this.#landing = landing;
  }

  get nowS(): number {
    return this.edge.skewMs / 1_000;
  }

  /** The origin. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const page = Number(/p(\d+)$/.exec(request.url ?? "")?.[1] ?? 0);
    const policy = this.policies[page] ?? "public";
    const session = sessionOf(request);
    const { clears, nowS: atS } = this;
    await sleep(this.#tick++ % 4);
    const made = (isFor: string | null): string =>
      JSON.stringify({
        page,
        session: isFor === "" ? null : isFor,
        clears,
        atS,
        isConfirmable: policy === "validated" || policy === "dated",
        isPersonal: personal.has(policy),
        isMomentary: policy === "asked-each-time",
      } satisfies Made);
    response.sendDate = false;
    const lasting = { "Cache-Control": `max-age=${lifeS}` };
    const own = { ...lasting, "Set-Cookie": `session=${session}` };
    const isAuthorized = request.headers.authorization !== undefined;
    const isOpen = page === openPage && !isAuthorized;
    switch (policy) {
      case "public":
        return void response.writeHead(200, lasting).end(made(isAuthorized ? session : null));
      case "validated": {
        const head = { ...lasting, ETag: `"${page}-${this.walk}"` };
        if (request.headers["if-none-match"] === head.ETag)
          return void response.writeHead(304, head).end();
        return void response.writeHead(200, head).end(made(isAuthorized ? session : null));
      }
      case "private":
        return void response
          .writeHead(200, { "Cache-Control": "private, max-age=99" })
          .end(made(session));
      case "no-store":
        return void response.writeHead(200, { "Cache-Control": "no-store" }).end(made(session));
      case "cookie":
        return void response.writeHead(200, own).end(made(isOpen ? null : session));
      case "vary":
        return void response.writeHead(200, { ...lasting, Vary: "Cookie" }).end(made(session));
      case "silent":
        return void response.end(made(session));
      case "dated": {
        const head = { "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT" };
        if (request.headers["if-modified-since"] !== undefined)
          return void response.writeHead(304, head).end();
        return void response.writeHead(200, head).end(made(session));
      }
      case "asked-each-time": {
        const head = { "Cache-Control": "no-cache, must-revalidate, max-age=0" };
        return void response.writeHead(200, head).end(made(session));
      }
      case "credentials":
        return void response.writeHead(200, lasting).end(made(isAuthorized ? session : null));
      case "trouble":
        return void response.writeHead(500, own).end(made(isOpen ? null : session));
      case "cut":
        return void response.destroy();
      default:
        return policy satisfies never;
    }
  }

  async take(next: Step): Promise<void> {
    if (Array.isArray(next)) await Promise.all(next.map(async (one) => this.#visit(one)));
    else if ("policy" in next) this.policies[next.page] = next.policy;
    else if ("passS" in next) {
      // A rule's time begins when a response has come: no fetch in the background takes as long as this.
      await Promise.all(this.#landing);
      this.edge.skewMs += next.passS * 1_000;
    } else {
      const path = this.#path(next.clears);
      this.clears++;
      this.edge.cache.clear((key) => key.path === path);
      this.#clearedAt.set(path, this.clears);
    }
  }

  readonly #clearedAt = new Map<string, number>();

  #path(page: number): string {
    return `/w${this.walk}/p${page}`;
  }

  async #visit(step: VisitStep): Promise<void> {
    const { page, session, isMeasured, method, way, isPlain } = step;
    const isAuthorized = step.isAuthorized && !isPlain;
    const isRanged = step.isRanged && !isPlain;
    const wish = isPlain ? "" : step.wish;
    const path = this.#path(page);
    const clearedAt = this.#clearedAt.get(path) ?? 0;
    const { nowS } = this;
    const asked: Asked = {
      method,
      headers: {
        ...cookiesOf(session, isMeasured),
        ...(wish !== "" && { "cache-control": wish }),
        ...(isAuthorized && { authorization: session }),
        ...(isRanged && { range: "bytes=0-" }),
        ...(way === "node" && { te: "trailers" }),
      },
    };
    const { headers, text } =
      way === "http2" ? await this.#http2.ask(path, asked) : await ask(this.edge, path, asked);
    const cookie = headers["set-cookie"]?.toString();
    if (cookie !== undefined) expect(cookie).toBe(`session=${session}`);
    if (method === "HEAD" || !text.startsWith("{")) return;
    this.served++;
    const said = headers["cache-status"]?.toString() ?? "";
    const staleS = said.includes("stale-if-error")
      ? ifErrorS
      : /; hit; ttl=(?:-|0$)/.test(said)
        ? whileS
        : 0;
    if (/ttl=-/.test(said)) this.stale++;
    const made = JSON.parse(text) as Made; // The origin's above.
    expect(made.page).toBe(page);
    // Nothing here says that it is for who has credentials.
    const own = session === "" ? null : session;
    if (made.session !== null || made.isPersonal || isAuthorized) expect(made.session).toBe(own);
    if (made.isMomentary) expect(made.atS).toBe(nowS);
    expect(made.clears).toBeGreaterThanOrEqual(clearedAt);
    if (!made.isConfirmable) expect(nowS - made.atS).toBeLessThan(lifeS + staleS + 1);
  }
}

function sessionOf({ headers }: IncomingMessage): string {
  return /(?:^|; )session=(\d)$/.exec(headers.cookie ?? "")?.[1] ?? "";
}

function cookiesOf(session: string, isMeasured: boolean): { readonly cookie?: string } {
  const cookies = [isMeasured ? "_ga=GA1.2.3" : "", session === "" ? "" : `session=${session}`];
  const cookie = cookies.filter((one) => one !== "").join("; ");
  return cookie === "" ? {} : { cookie };
}

/** Shows what has not landed. */
class WatchedFlights extends Flights {
  readonly #landing: Set<Promise<unknown>>;

  constructor(deps: FlightDeps, landing: Set<Promise<unknown>>) {
    super(deps);
    this.#landing = landing;
  }

  override start(plan: FlightPlan, mayShare: boolean): Flight {
    const flight = super.start(plan, mayShare);
    this.#landing.add(flight.landed);
    void flight.landed.then(() => this.#landing.delete(flight.landed));
    return flight;
  }
}

/** `ignored`: cookies that the rules ignore, the list aside. */
async function openScene(ignored: readonly string[] = [], parts: Partial<EdgeParts> = {}) {
  const stack = new AsyncDisposableStack();
  let scene: Scene | undefined;
  const origin = stack.use(
    await openOrigin((request, response) => {
      scene?.answer(request, response).catch(() => response.destroy());
    }),
  );
  const landing = new Set<Promise<unknown>>();
  const flights: EdgeParts["flights"] = (deps) => new WatchedFlights(deps, landing);
  const edge = stack.use(new Edge({ parts: { flights, ...parts } }));
  await edge.listen();
  const securePort = await edge.listenSecure();
  const cookies = { ignore: ignored };
  const rule = { stale_while_revalidate_s: whileS, stale_if_error_s: ifErrorS, cookies };
  const backend = { urls: [origin.url], retries: 0 };
  const rules = [
    { path: `/*/p${openPage}`, ignore_set_cookie: true, ...rule },
    ...ruledPages.map((page) => ({ path: `/*/p${page}`, ttl_s: lifeS, ...rule })),
  ];
  const state = stateOf(1, { backend, cache: { rules, default: rule } });
  edge.publish({ ...state, certificates: tableOf(installed()) });
  scene = new Scene(edge, stack.use(await visitByHttp2(securePort)), landing);
  return { scene, [Symbol.asyncDispose]: async () => stack.disposeAsync() };
}

async function walks(scene: Scene, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
      scene.walk++;
      scene.policies.splice(0);
      for (const next of steps) await scene.take(next);
    }),
    { numRuns, endOnFailure: true },
  );
}

test("nobody gets what is another's, what was cleared, or what is too old", async () => {
  await using opened = await openScene();
  const { scene } = opened;
  await walks(scene, 80);
  expect(scene.served).toBeGreaterThan(300);
  expect(scene.stale).toBeGreaterThan(10);
  expect(scene.edge.quick.answer).toBeGreaterThan(50);
}, 300_000);

test("the walks find it where what is prepared is sent unasked", async () => {
  const fault = plantedFaults.find(({ name }) => name === "a stale prepared answer");
  await using opened = await openScene([], fault?.parts);
  await expect(walks(opened.scene, 400)).rejects.toThrow();
}, 300_000);

test("the walks find it where a login is ignored", async () => {
  await using opened = await openScene(["session"]);
  await expect(walks(opened.scene, 200)).rejects.toThrow();
}, 300_000);

/** What is found of an entry is changed. */
function finding({ edge }: Scene, change: (entry: Entry) => Partial<Entry>): void {
  const find = edge.cache.find.bind(edge.cache);
  edge.cache.find = (key) => find(key).map((entry) => ({ ...entry, ...change(entry) }));
}

test.each<[string, (scene: Scene) => void]>([
  [
    "cleared entries are served",
    ({ edge: { cache } }) => (cache.servable = ({ id }) => cache.rows.has(id)),
  ],
  ["what varies is forgotten", (scene) => finding(scene, () => ({ vary: null }))],
  [
    "entries never age",
    (scene) => finding(scene, () => ({ storedAtMs: Date.now() + scene.edge.skewMs - 1 })),
  ],
  [
    "what is stored is for credentials too",
    (scene) => finding(scene, () => ({ headers: [["Cache-Control", "public, max-age=10"]] })),
  ],
])(
  "the walks find it where %s",
  async (_name, plant) => {
    await using opened = await openScene();
    plant(opened.scene);
    await expect(walks(opened.scene, 200)).rejects.toThrow();
  },
  300_000,
);
