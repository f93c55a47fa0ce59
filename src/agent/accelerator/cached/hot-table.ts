// What hot requests are answered by, so that nothing of it is derived again: which host a Host field names, the way of a target through a site, and answers
// from the cache, small ones whole. All of it belongs to one state, and is dropped with it. Bounded in bytes.
//
// Nothing here is proof that something may be served. Whoever answers asks that of the cache, for each request, in the step in which the head is written.

import type { Scheme } from "../../../core/http/client-address.ts";
import type { RequestTarget } from "../../../core/http/request-path.ts";
import type { BytePace } from "../../../core/limits/byte-pace.ts";
import type { RequestLimit } from "../../../core/limits/site-limits.ts";
import type { CacheRoute } from "../../../core/serving/cache-route.ts";
import type { Entry, EntryKey, VariantForm } from "../../cache/entry.ts";
import type { HeldEntries } from "../../cache/worker/hot-lookups.ts";
import { HotMemory } from "../../cache/worker/hot-memory.ts";
import type { Http2Head } from "../doors/http2-head.ts";
import type { Forms } from "./forms.ts";
import type { FileFound } from "../files/site-files.ts";
import type { HostTable, ServedSite, ServedUnder } from "../pool/host-table.ts";

/** The way of a target through a site: what lies there under its path, and what the cache is asked, and how. */
export type HotWay = {
  readonly target: RequestTarget;
  readonly site: ServedSite;
  /** The rules of `limits.requests` that the path meets. */
  readonly limits: readonly RequestLimit[];
  /** What the first rule of `limits.bytes` that the path meets says. */
  readonly pace: BytePace | undefined;
  /** Undefined: it is looked for with each request. */
  readonly file: FileFound | undefined;
  /** Undefined where a file answers. */
  readonly rule: CacheRoute | undefined;
  readonly key: EntryKey;
};

/** A way that is kept, with the heads of the stored responses or of the file that were sent lately. */
export type HotRoute = HotWay & {
  readonly name: string;
  readonly forms: HotForms[];
  /** What memory held of the key lately; ask whether it is current. */
  held: HeldEntries | undefined;
  /** See records/record-line.ts. */
  recordPart: string | undefined;
};

/** The heads of one stored response, or of a file that the index knows. */
export type HotForms = {
  /** As it is under the rule in force, or noted of the file. Whatever changes it makes another object. */
  readonly base: Entry;
  /** The forms that it may be sent in. */
  readonly possible: Forms;
  readonly heads: HotHead[];
};

/** Which head of a stored response: the form that is sent, and the one that the request's conditions name. */
export type HeadKind = {
  readonly status: number;
  readonly sent: VariantForm | null;
  readonly named: VariantForm | null;
  readonly hasBody: boolean;
};

/** An answer for one age, or of a file for one second of the day. */
export type HotHead = HeadKind & {
  readonly ageS: number;
  /** The head, whole but for what its connection says. */
  readonly text: string;
  /** The body, one character a byte; undefined where it is large. */
  readonly body: string | undefined;
  /** The whole answer on a connection that stays open; undefined where its body is large. */
  readonly whole: string | undefined;
  /** The same head over HTTP/2. */
  readonly http2: Http2Head;
};

/** Of a route with its objects, of the heads of one response, of one head beside its text and what HTTP/2 has in its place. */
const routeBytes = 1_024;
const formsBytes = 256;
const headBytes = 128;
const hostsMax = 1_024;
/** The most stored responses of one route (they vary), and heads of one response, that are kept. */
const formsMax = 8;
const headsMax = 8;

export class HotTable {
  readonly #routes: HotMemory<string, HotRoute>;
  readonly #hosts = new Map<string, ServedUnder>();
  #state: HostTable | undefined;

  constructor(bytesMax: number) {
    this.#routes = new HotMemory(bytesMax);
  }

  /** Makes the table one of this state; to be called before anything is asked for. */
  use(state: HostTable): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#routes.clear();
    this.#hosts.clear();
  }

  /** `host` is the Host field as sent. */
  host(host: string): ServedUnder | undefined {
    return this.#hosts.get(host);
  }

  keepHost(host: string, served: ServedUnder): void {
    if (this.#hosts.size >= hostsMax) this.#hosts.clear();
    this.#hosts.set(host, served);
  }

  /** `host` and `url` are as sent. */
  route(scheme: Scheme, host: string, url: string): HotRoute | undefined {
    return this.#routes.get(nameOf(scheme, host, url));
  }

  /** To be kept when it has answered: others would only be carried from one collection of garbage to the next. */
  newRoute(scheme: Scheme, host: string, url: string, way: HotWay): HotRoute {
    const name = nameOf(scheme, host, url);
    return { ...way, name, forms: [], held: undefined, recordPart: undefined };
  }

  /** A way whose rule was chosen by the fields of a request is found anew for each. */
  keepRoute(route: HotRoute): void {
    if (route.rule !== undefined && route.rule.choice !== "") return;
    this.#routes.put(route.name, route, bytesOf(route));
  }

  /** Keeps room for the heads of a stored response, in the place of those that it had before. */
  keepForms(route: HotRoute, base: Entry, possible: Forms): HotForms {
    const kept: HotForms = { base, possible, heads: [] };
    const { forms } = route;
    const at = forms.findIndex((form) => form.base.id === base.id);
    if (at >= 0) forms[at] = kept;
    else if (forms.length < formsMax) forms.push(kept);
    else forms[base.id % formsMax] = kept;
    return kept;
  }

  /** Keeps a head in the place of the one for another age. */
  keepHead(route: HotRoute, { heads }: HotForms, head: HotHead): void {
    const at = heads.findIndex((one) => isSameKind(one, head));
    if (at >= 0) heads[at] = head;
    else if (heads.length < headsMax) heads.push(head);
    this.keepRoute(route);
  }
}

function nameOf(scheme: Scheme, host: string, url: string): string {
  return scheme === "https" ? `s${host}${url}` : `p${host}${url}`;
}

function bytesOf({ name, forms }: HotRoute): number {
  let bytes = routeBytes + 4 * name.length;
  for (const { heads } of forms) {
    bytes += formsBytes;
    for (const { text, whole } of heads)
      bytes += headBytes + 2 * text.length + (whole?.length ?? 0);
  }
  return bytes;
}

/** Returns the heads of a stored response if they were made of it as it is. */
export function formsOf({ forms }: HotRoute, base: Entry): HotForms | undefined {
  for (const form of forms) if (form.base === base) return form;
  return undefined;
}

/** Returns the head that was made for this age. */
export function headOf({ heads }: HotForms, kind: HeadKind, ageS: number): HotHead | undefined {
  for (const head of heads)
    if (isSameKind(head, kind)) return head.ageS === ageS ? head : undefined;
  return undefined;
}

function isSameKind(a: HeadKind, b: HeadKind): boolean {
  return (
    a.status === b.status && a.sent === b.sent && a.named === b.named && a.hasBody === b.hasBody
  );
}
