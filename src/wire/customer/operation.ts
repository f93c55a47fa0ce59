// What an operation promises beside its body: what a good answer carries, and which query parameters it
// reads. Documents, pages and tests are made from it.

import type { TSchema } from "typebox";
import type { Shape } from "./shape.ts";

/** The body of a good answer. */
export type Gives =
  | { readonly kind: "json"; readonly status: 200 | 201; readonly schema: TSchema }
  /** A plain array in order of id, with `?limit=` and `?after=`; the schema is that of an item. */
  | { readonly kind: "list"; readonly status: 200; readonly schema: TSchema }
  | { readonly kind: "nothing"; readonly status: 204 }
  /** A page or a file. */
  | { readonly kind: "media"; readonly status: 200; readonly type: string };

export function gives(shape: Shape<unknown>): Gives {
  return { kind: "json", status: 200, schema: shape.schema };
}

/** Describes an answer with 201, after something was made. */
export function makes(shape: Shape<unknown>): Gives {
  return { kind: "json", status: 201, schema: shape.schema };
}

export function lists(shape: Shape<unknown>): Gives {
  return { kind: "list", status: 200, schema: shape.schema };
}

export const givesNothing: Gives = { kind: "nothing", status: 204 };

/** `type` is written as in the header `Content-Type`. */
export function givesMedia(type: string): Gives {
  return { kind: "media", status: 200, type };
}

/**
 * The refusals that an operation has of its own. Those that follow from its credentials, body and query (400,
 * 401, 413, 415) need not be named.
 */
export type RefusalStatus = 400 | 401 | 403 | 404 | 409 | 412 | 413 | 415 | 429 | 503;

/** A parameter of the query. */
export type QueryParameter = {
  readonly schema: Readonly<Record<string, unknown>>;
  readonly description: string;
  /** A request without it is refused. */
  readonly required?: true;
};
