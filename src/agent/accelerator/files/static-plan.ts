// What is answered with a static file: validators, conditions, one range. Pure but for what it is given; nothing is sent here.

import { precondition, selectRange, type ByteRange } from "../../../core/http/conditional.ts";
import {
  codedFields,
  codedTag,
  namedCoding,
  type Coding,
} from "../../../core/http/content-coding.ts";
import { formatHttpDate } from "../../../core/http/http-date.ts";
import type { Field } from "../../../core/http/http-fields.ts";
import type { SiteConfig } from "../../../core/serving/effective-devlove.ts";
import type { SiteFile } from "./site-files.ts";

export type StaticPlan = {
  readonly status: number;
  readonly fields: readonly Field[];
  /** Undefined: the whole. */
  readonly body: "none" | ByteRange | undefined;
};

/** The file as it lies there, or a variant of it. */
export type StaticForm = {
  readonly coding: Coding | null;
  readonly size: number;
  /** Visitors may know it by the tags of its variants. */
  readonly isCodable: boolean;
};

/** With a range in the request `form` must be the file itself. */
export function planStatic(
  request: { readonly method: string; readonly fields: readonly Field[] },
  site: SiteConfig,
  file: SiteFile,
  form: StaticForm,
  nowMs: number,
): StaticPlan {
  const { method, fields } = request;
  const { etag } = file.validators;
  const named = form.isCodable ? namedCoding(fields, etag, form.coding) : null;
  const known = { ...file.validators, etag: etag && codedTag(etag, named) };
  const condition = precondition(fields, known);
  if (condition === "not-modified")
    return { status: 304, fields: metadata(site, known), body: "none" };
  if (condition === "failed")
    return { status: 412, fields: [["Content-Length", "0"]], body: "none" };
  const range =
    method === "GET" ? selectRange(fields, file.validators, file.size, nowMs) : undefined;
  if (range === undefined)
    return {
      status: 200,
      fields: representation(site, file, form),
      body: method === "HEAD" ? "none" : undefined,
    };
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
      ...metadata(site, file.validators),
    ],
    body: range,
  };
}

function representation(site: SiteConfig, file: SiteFile, form: StaticForm): readonly Field[] {
  const fields: readonly Field[] = [
    ["Content-Type", file.contentType],
    ["Content-Length", `${form.size}`],
    ["Accept-Ranges", "bytes"],
    ...metadata(site, file.validators),
  ];
  return codedFields(fields, form.coding);
}

function metadata(site: SiteConfig, validators: SiteFile["validators"]): readonly Field[] {
  const fields: Field[] = [["Cache-Control", `public, max-age=${site.static.max_age_s}`]];
  if (validators.etag !== undefined) fields.push(["ETag", validators.etag]);
  if (validators.modifiedMs !== undefined)
    fields.push(["Last-Modified", formatHttpDate(validators.modifiedMs)]);
  return fields;
}
