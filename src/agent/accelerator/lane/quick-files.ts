// Answers in one step with a static file whose bytes are in memory and that the cache index knows; what an index does not know is noted by the pipeline.
//
// The bytes go by digest and never change. Which file a path names is the state's, and what is kept of it goes with the state; in a host's own folder it is looked for
// with each request. Whether the file or its variant was cleared is asked of the cache for each request.

import type { Entry } from "../../cache/entry.ts";
import type { EntryDeps } from "../cached/entry-answer.ts";
import { chooseTaken, countVariant, namedAmong, offerForms, type Forms } from "../cached/forms.ts";
import {
  formsOf,
  headOf,
  type HeadKind,
  type HotForms,
  type HotHead,
  type HotRoute,
  type HotTable,
} from "../cached/hot-table.ts";
import { flatHead } from "../doors/answer.ts";
import type { SiteFile } from "../files/site-files.ts";
import {
  formsOfFile,
  planStatic,
  readFileAgain,
  staticFields,
  type StaticPlan,
} from "../files/static-answer.ts";
import { hstsOf } from "../judging.ts";
import { heldOf, makeHead, noBytes, type QuickAnswer } from "./quick-answer.ts";
import type { QuickRequest } from "./quick-request.ts";

/** Nothing that a plain head asks of a file depends on the clock but the date. */
const dateStepMs = 1_000;

type HeadMaking = {
  readonly file: SiteFile;
  readonly entry: Entry;
  readonly kind: HeadKind & Pick<HotHead, "ageS">;
  readonly body: string | Uint8Array;
};

export class QuickFiles {
  readonly #deps: EntryDeps;
  readonly #table: HotTable;

  constructor(deps: EntryDeps, table: HotTable) {
    this.#deps = deps;
    this.#table = table;
  }

  answer(asked: QuickRequest, route: HotRoute, file: SiteFile): QuickAnswer | undefined {
    const { cache, metrics } = this.#deps;
    const held = heldOf(cache, route);
    const base = held?.entries.find(
      (entry) => entry.form === null && entry.digest === file.digest && cache.servable(entry),
    );
    if (held === undefined || base === undefined) return undefined;
    const forms =
      formsOf(route, base) ??
      this.#table.keepForms(
        route,
        base,
        formsOfFile(asked.site.site, file, asked.asked.pictureWidth),
      );
    const { possible } = forms;
    const entry =
      possible.kind === "none" ? base : this.#chooseForm(asked, possible, file, base, held.entries);
    const kind = kindOf(asked, file, forms, entry);
    const second = Math.floor(asked.startedWallMs / dateStepMs);
    const known = headOf(forms, kind, second);
    const { hasBody, status } = kind;
    const asText = asked.request.httpVersion === "2" ? undefined : known?.body;
    const body = asText ?? (hasBody ? this.#bodyOf(file, base, entry) : noBytes);
    if (body === undefined) return undefined;
    const making = { file, entry, kind: { ...kind, ageS: second }, body };
    const made = known ?? this.#makeHead(asked, route, forms, making);
    cache.noteHit(held, entry);
    if (hasBody) countVariant(metrics, base, entry);
    const { text: head, whole, http2 } = made;
    return { kind: "answer", asked, status, cache: "hit", head, body, whole, http2 };
  }

  #chooseForm(
    { visitor, site: { files } }: QuickRequest,
    possible: Forms,
    file: SiteFile,
    base: Entry,
    entries: readonly Entry[],
  ): Entry {
    const { variant, wanted } = chooseTaken(this.#deps.cache, possible, visitor, base, entries);
    const read = async (): Promise<Uint8Array | undefined> => readFileAgain({ files, file }, base);
    if (wanted.length > 0) offerForms(this.#deps, possible, base, wanted, read);
    return variant ?? base;
  }

  #bodyOf(file: SiteFile, base: Entry, entry: Entry): Uint8Array | undefined {
    return entry === base ? file.held() : this.#deps.cache.held(entry);
  }

  #makeHead(
    asked: QuickRequest,
    route: HotRoute,
    forms: HotForms,
    { file, entry, kind, body }: HeadMaking,
  ): HotHead {
    const { site, host, scheme, startedWallMs } = asked;
    const plan = planOf(asked, file, forms, entry);
    const fields = staticFields(site.site, plan, forms.possible, "hit");
    const flat = flatHead(fields, host === undefined ? 0 : hstsOf(host, scheme));
    const made = makeHead(kind, flat, body, startedWallMs);
    this.#table.keepHead(route, forms, made);
    return made;
  }
}

/** Which head answers. */
function kindOf(asked: QuickRequest, file: SiteFile, forms: HotForms, entry: Entry): HeadKind {
  const { request } = asked;
  const { form: sent } = entry;
  const hasBody = request.method === "GET";
  if (!request.said.isConditional || planOf(asked, file, forms, entry).status !== 304)
    return { status: 200, sent, named: sent, hasBody };
  const { etag } = file.validators;
  const { fields } = request;
  const named = namedAmong(forms.possible, fields, etag, sent);
  return { status: 304, sent, named, hasBody: false };
}

/** A plain head has no range and no precondition that could fail. */
function planOf(
  { request, site: { site }, startedWallMs }: QuickRequest,
  file: SiteFile,
  { possible: forms }: HotForms,
  { form: word, size }: Entry,
): StaticPlan {
  return planStatic(request, site, file, { word, size, forms }, startedWallMs);
}
