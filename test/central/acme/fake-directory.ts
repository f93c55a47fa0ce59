// A directory of ACME in memory, which does what a test says: it refuses nonces, limits, looks at challenges by the test's word, and
// issues certificates of the keys in the requests.

import { createPublicKey } from "node:crypto";
import type { HttpAnswered, HttpAsked } from "../../../src/central/acme/directory-http.ts";
import { derContents, derOf, derTags } from "../../../src/core/der.ts";
import { makeAuthority } from "../../support/x509.ts";

const authority = makeAuthority();
const origin = "https://acme.example.com";
export const directoryUrl = `${origin}/directory`;

type Order = {
  readonly names: readonly string[];
  readonly replaces: string | undefined;
  status: string;
  chain: string | undefined;
  /** The state of each authorization, as of its challenge. */
  readonly proofs: Map<string, "pending" | "valid" | "invalid">;
  /** When the look at a host ends that was asked for, ms since the epoch. */
  readonly looking: Map<string, number>;
};

export type Refusal = {
  readonly status: number;
  readonly type: string;
  readonly detail?: string;
  readonly retryAfter?: string;
};

export class FakeDirectory {
  readonly orders: Order[] = [];
  readonly accounts: string[] = [];
  /** Each request by method and path, in order. */
  readonly asked: string[] = [];
  /** The next so many nonces are refused. */
  noncesRefused = 0;
  /** Answers instead of its own, by the beginning of the path, each once. */
  readonly refusals: [string, Refusal][] = [];
  /** What it finds at a host. */
  looks: (host: string) => "valid" | "invalid" = () => "valid";
  /** How long it looks at a host, by the clock. */
  lookMs: (host: string) => number = () => 0;
  /** Whether a challenge is `processing` meanwhile; some directories leave it `pending`. */
  saysProcessing = false;
  /** How often it was asked to look, by the end of the challenge's path. */
  readonly validations = new Map<string, number>();
  /** Requests that do not come to it, and those whose answers do not come back, by the beginning of the path, each once. */
  readonly lost: string[] = [];
  readonly unanswered: string[] = [];
  /** Called with the path of each request before it is answered. */
  onAsk: (path: string) => Promise<void> = async () => undefined;
  /** The hosts of which it wants a proof for an order of these. */
  proves: (names: readonly string[]) => readonly string[] = (names) => names;
  /** After which time an order is over. */
  expiresMs = 7 * 86_400_000;
  lifeMs = 90 * 86_400_000;
  /** How old a certificate is when it is issued: a directory that backdates, or a clock of central's that is ahead. */
  agedMs = 0;
  /** When it wants certificates renewed; undefined: it does not say. */
  window: { readonly start: string; readonly end: string } | undefined;
  readonly #now: () => Date;
  #nonces = 0;

  constructor(now: () => Date) {
    this.#now = now;
  }

  async ask({ method, url, body }: HttpAsked, signal: AbortSignal): Promise<HttpAnswered> {
    const path = url.slice(origin.length);
    this.asked.push(`${method} ${path}`);
    await Promise.race([this.onAsk(path), aborted(signal)]);
    if (signal.aborted) return { kind: "unreachable", reason: "it does not answer in time" };
    const away = { kind: "unreachable", reason: "the connection broke" } as const;
    if (takeOut(this.lost, path)) return away;
    if (takeOut(this.unanswered, path)) {
      this.#answer(path, body === undefined ? undefined : payloadOf(body));
      return away;
    }
    const refusal = this.refusals.findIndex(([start]) => path.startsWith(start));
    if (refusal >= 0) {
      const [[, said] = ["", { status: 500, type: "" }]] = this.refusals.splice(refusal, 1);
      return this.#problem(said);
    }
    if (body !== undefined && this.noncesRefused > 0) {
      this.noncesRefused--;
      return this.#problem({ status: 400, type: "badNonce" });
    }
    return this.#answer(path, body === undefined ? undefined : payloadOf(body));
  }

  #answer(path: string, payload: unknown): HttpAnswered {
    const [, what, id] = path.split("/");
    const order = this.orders[Number(id?.split("-")[0])];
    switch (what) {
      case "directory":
        return this.#json(200, {
          newNonce: `${origin}/nonce`,
          newAccount: `${origin}/account`,
          newOrder: `${origin}/order`,
          ...(this.window !== undefined && { renewalInfo: `${origin}/renewal` }),
          meta: { termsOfService: "x" },
        });
      case "nonce":
        return this.#json(200, {});
      case "renewal":
        return this.#json(200, { suggestedWindow: this.window });
      case "account":
        this.accounts.push(JSON.stringify(payload));
        return this.#json(201, {}, `${origin}/account/1`);
      case "order":
        if (id === undefined) return this.#place(payload);
        return order === undefined ? this.#gone() : this.#json(200, this.#shown(Number(id)));
      case "proof":
        return order === undefined ? this.#gone() : this.#json(200, this.#proof(id ?? ""));
      case "look":
        return order === undefined ? this.#gone() : this.#begin(order, id ?? "");
      case "finalize":
        if (order === undefined) return this.#gone();
        this.#issue(order, payload);
        return this.#json(200, this.#shown(Number(id)));
      case "certificate":
        return this.#answered(200, order?.chain ?? "");
      default:
        return this.#gone();
    }
  }

  #place(payload: unknown): HttpAnswered {
    const { identifiers, replaces } = payload as {
      readonly identifiers: readonly { readonly value: string }[];
      readonly replaces?: string;
    };
    const names = this.proves(identifiers.map(({ value }) => value));
    const proofs = new Map(names.map((name) => [name, "pending"] as const));
    const looking = new Map<string, number>();
    const order = { names, replaces, status: "pending", chain: undefined, proofs, looking };
    const id = this.orders.push(order) - 1;
    return this.#json(201, this.#shown(id), `${origin}/order/${id}`);
  }

  #shown(id: number): unknown {
    const order = this.orders[id];
    if (order === undefined) throw new Error("no such order");
    this.#look(order);
    const states = [...order.proofs.values()];
    if (order.status === "pending" && states.every((state) => state === "valid"))
      order.status = "ready";
    if (states.includes("invalid")) order.status = "invalid";
    return {
      status: order.status,
      expires: new Date(this.#now().getTime() + this.expiresMs).toISOString(),
      authorizations: order.names.map((_, no) => `${origin}/proof/${id}-${no}`),
      finalize: `${origin}/finalize/${id}`,
      ...(order.chain !== undefined && { certificate: `${origin}/certificate/${id}` }),
    };
  }

  #proof(place: string): unknown {
    const { order, name } = this.#at(place);
    this.#look(order);
    const status = order.proofs.get(name) ?? "pending";
    const isProcessing = this.saysProcessing && order.looking.has(name);
    const proofStatus = isProcessing ? "processing" : status;
    const error = { type: "urn:ietf:params:acme:error:unauthorized", detail: "saw something else" };
    const token = `token-${place}`;
    const url = `${origin}/look/${place}`;
    return {
      identifier: { type: "dns", value: name },
      status,
      challenges: [
        { type: "dns-01", url, status: "pending", token },
        {
          type: "http-01",
          url,
          status: proofStatus,
          token,
          ...(status === "invalid" && { error }),
        },
      ],
    };
  }

  #begin(order: Order, place: string): HttpAnswered {
    const { name } = this.#at(place);
    this.validations.set(place, (this.validations.get(place) ?? 0) + 1);
    if (!order.looking.has(name))
      order.looking.set(name, this.#now().getTime() + this.lookMs(name));
    this.#look(order);
    return this.#json(200, {});
  }

  /** Ends the looks of an order that are over by the clock. */
  #look(order: Order): void {
    for (const [name, endsMs] of order.looking) {
      if (endsMs > this.#now().getTime()) continue;
      order.looking.delete(name);
      order.proofs.set(name, this.looks(name));
    }
  }

  #at(place: string): { readonly order: Order; readonly name: string } {
    const [id = 0, no = 0] = place.split("-").map(Number);
    const order = this.orders[id];
    if (order === undefined) throw new Error("no such order");
    return { order, name: order.names[no] ?? "" };
  }

  /** Issues for the key of the request. */
  #issue(order: Order, payload: unknown): void {
    const { csr } = payload as { readonly csr: string };
    const { sequence } = derTags;
    const [request] = derContents(Buffer.from(csr, "base64url"), sequence);
    const [info] = derContents(request ?? Buffer.of(), sequence);
    const [, key] = derContents(info ?? Buffer.of(), sequence);
    const publicKey = createPublicKey({
      key: derOf(sequence, key ?? Buffer.of()),
      format: "der",
      type: "spki",
    });
    const from = new Date(this.#now().getTime() - this.agedMs);
    order.chain = authority.issue({
      names: order.names,
      publicKey,
      from,
      to: new Date(from.getTime() + this.lifeMs),
      issuerKeyId: Buffer.from("issuer"),
    }).chain;
    order.status = "valid";
  }

  #json(status: number, value: unknown, location?: string): HttpAnswered {
    return this.#answered(status, JSON.stringify(value), { location });
  }

  #answered(
    status: number,
    body: string,
    more: { readonly location?: string | undefined; readonly retryAfterMs?: number } = {},
  ): HttpAnswered {
    const { location, retryAfterMs } = more;
    const headers = { "replay-nonce": `n${++this.#nonces}`, ...(location && { location }) };
    return { kind: "answered", status, headers, body, retryAfterMs };
  }

  #gone(): HttpAnswered {
    return this.#problem({ status: 404, type: "malformed" });
  }

  #problem({ status, type, detail = "no", retryAfter }: Refusal): HttpAnswered {
    const problem = { type: `urn:ietf:params:acme:error:${type}`, detail };
    const body = JSON.stringify(problem);
    if (retryAfter === undefined) return this.#answered(status, body);
    return this.#answered(status, body, { retryAfterMs: Number(retryAfter) * 1_000 });
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  if (!signal.aborted) await promise;
}

/** Whether a beginning of the path was among these; it is none of them any more. */
function takeOut(beginnings: string[], path: string): boolean {
  const at = beginnings.findIndex((start) => path.startsWith(start));
  return at >= 0 && beginnings.splice(at, 1).length > 0;
}

function payloadOf(body: string): unknown {
  const { payload } = JSON.parse(body) as { readonly payload: string };
  return payload === "" ? undefined : JSON.parse(Buffer.from(payload, "base64url").toString());
}
