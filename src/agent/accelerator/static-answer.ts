// Answering with a static file: validators, conditions, one range; and whether the cache index knew it (Cache-Status, noteStatic).

import { precondition, selectRange, type ByteRange } from "../../core/conditional.ts";
import { formatHttpDate } from "../../core/http-date.ts";
import type { Field } from "../../core/http-fields.ts";
import type { SiteConfig } from "../../core/effective-devlove.ts";
import { cacheStatus, sendBody, withSiteHeaders, writeHead, type Body } from "./answer.ts";
import type { EntryKey, ResponseCache } from "./cache-port.ts";
import type { Exchange } from "./exchange.ts";
import type { Clock } from "./ports.ts";
import type { SiteFile } from "./site-files.ts";

export type StaticAnswerDeps = { readonly cache: ResponseCache; readonly clock: Clock };

type Plan = {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: "none" | ByteRange | undefined;
};

/** `sourceNo` was read before the file was looked up. Throws SourceChanged before the head when the source does not hold still. */
export async function answerStatic(
  exchange: Exchange,
  site: SiteConfig,
  file: SiteFile,
  options: StaticAnswerDeps & { readonly sourceNo: number },
): Promise<void> {
  const { cache } = options;
  const plan = planAnswer(exchange, site, file, options.clock.wallMs());
  let body: Body | undefined;
  if (plan.body !== "none" && exchange.method !== "HEAD") body = await file.body(plan.body);

  const key: EntryKey = {
    domain: site.main_domain,
    host: site.host,
    kind: "static",
    path: file.path,
    query: "",
  };
  const isHit = cache
    .find(key)
    .some((entry) => entry.digest === file.digest && cache.servable(entry.id));
  exchange.cache = isHit ? "hit" : "miss";
  writeHead(exchange, plan.status, [
    ...withSiteHeaders(plan.fields, site.headers),
    cacheStatus(isHit ? "hit" : "fwd=miss"),
  ]);
  if (!isHit && plan.status < 400) note(key, site, file, options);
  await sendBody(exchange, body);
}

/** The site's page for what is not there: whole, without validators, never an entry. */
export async function answerNotFound(
  exchange: Exchange,
  site: SiteConfig,
  file: SiteFile,
): Promise<void> {
  const body = exchange.method === "HEAD" ? undefined : await file.body(undefined);
  const fields: readonly Field[] = [
    ["Content-Type", file.contentType],
    ["Content-Length", `${file.size}`],
    ["Cache-Control", "no-cache"],
  ];
  writeHead(exchange, 404, withSiteHeaders(fields, site.headers));
  await sendBody(exchange, body);
}

function planAnswer(exchange: Exchange, site: SiteConfig, file: SiteFile, nowMs: number): Plan {
  const condition = precondition(exchange.fields, file.validators);
  if (condition === "not-modified")
    return { status: 304, fields: metadata(site, file), body: "none" };
  if (condition === "failed")
    return { status: 412, fields: [["Content-Length", "0"]], body: "none" };
  const range =
    exchange.method === "GET"
      ? selectRange(exchange.fields, file.validators, file.size, nowMs)
      : undefined;
  if (range === undefined)
    return { status: 200, fields: representation(site, file), body: undefined };
  if (range === "unsatisfiable") {
    return {
      status: 416,
      fields: [
        ["Content-Range", `bytes */${file.size}`],
        ["Content-Length", "0"],
      ],
      body: "none",
    };
  }
  return {
    status: 206,
    fields: [
      ["Content-Type", file.contentType],
      ["Content-Length", `${range.last - range.first + 1}`],
      ["Content-Range", `bytes ${range.first}-${range.last}/${file.size}`],
      ...metadata(site, file),
    ],
    body: range,
  };
}

function representation(site: SiteConfig, file: SiteFile): readonly Field[] {
  return [
    ["Content-Type", file.contentType],
    ["Content-Length", `${file.size}`],
    ["Accept-Ranges", "bytes"],
    ...metadata(site, file),
  ];
}

function metadata(site: SiteConfig, { validators }: SiteFile): readonly Field[] {
  const fields: Field[] = [["Cache-Control", `public, max-age=${site.static.max_age_s}`]];
  if (validators.etag !== undefined) fields.push(["ETag", validators.etag]);
  if (validators.modifiedMs !== undefined)
    fields.push(["Last-Modified", formatHttpDate(validators.modifiedMs)]);
  return fields;
}

function note(
  key: EntryKey,
  site: SiteConfig,
  file: SiteFile,
  { cache, clock, sourceNo }: StaticAnswerDeps & { readonly sourceNo: number },
): void {
  cache.noteStatic(
    key,
    {
      status: 200,
      headers: [["Content-Type", file.contentType]],
      mime: file.contentType.replace(/;.*$/, "").trim().toLowerCase(),
      vary: null,
      storedAtMs: Math.floor(clock.ageMs()),
      initialAgeS: 0,
      freshForS: site.static.max_age_s,
      sourceNo,
      digest: file.digest,
    },
    file.size,
  );
}
