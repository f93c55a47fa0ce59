// Answers in one step with a file of a viewset whose bytes are in memory and that the cache index knows; what an index does not know is noted by the pipeline.
//
// The bytes go by digest and never change; which file a path names is the state's, and what is kept of it goes with the state. Whether the file or its variant was
// cleared is asked of the cache for each request.

import { namedForm } from "../../../core/http/form-tag.ts";
import type { Entry } from "../../cache/entry.ts";
import type { EntryDeps } from "../cached/entry-answer.ts";
import { chooseCoded, countVariant, takenForms } from "../cached/forms.ts";
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
  isCodableFile,
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
      this.#table.keepForms(route, base, isCodableFile(asked.site.site, file));
    const entry = forms.isCodable ? this.#chooseForm(asked, file, base, held.entries) : base;
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
    file: SiteFile,
    base: Entry,
    entries: readonly Entry[],
  ): Entry {
    const { cache, variants } = this.#deps;
    const { variant, wanted } = chooseCoded(cache, visitor.accepted, base, entries);
    if (wanted !== undefined)
      variants.offer({
        base,
        coding: wanted,
        read: async () => readFileAgain({ files, file }, base),
      });
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
    const fields = staticFields(site.site, plan, forms.isCodable, "hit");
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
  const named = forms.isCodable ? namedForm(fields, etag, sent, () => takenForms(fields)) : sent;
  return { status: 304, sent, named, hasBody: false };
}

/** A plain head has no range and no precondition that could fail. */
function planOf(
  { request, site: { site }, startedWallMs }: QuickRequest,
  file: SiteFile,
  { isCodable }: HotForms,
  { form: word, size }: Entry,
): StaticPlan {
  return planStatic(request, site, file, { word, size, isCodable }, startedWallMs);
}
